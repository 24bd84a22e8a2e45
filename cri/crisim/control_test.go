package crisim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

func TestRestartKeepsStateAndCutsCalls(t *testing.T) {
	cfg := crisim.Config{Latency: map[string]crisim.Latency{"RunPodSandbox": crisim.Fixed(time.Minute)}}
	simulate(t, cfg, func(n node) {
		first := n.run(pod("p", ""))
		cut := make(chan error, 1)
		go func() {
			_, err := n.client.RunPodSandbox(n.ctx, pod("q", ""), "")
			cut <- err
		}()
		time.Sleep(time.Second)
		n.sim.Restart()
		err := <-cut
		require.True(n, cri.IsUnavailable(err) && cri.IsUncertain(err), "%v", err)
		s, err := n.client.PodSandboxStatus(n.ctx, first)
		require.NoError(n, err)
		require.Equal(n, runtimeapi.PodSandboxState_SANDBOX_READY, s.GetState())
		time.Sleep(time.Minute)
		require.Len(n, n.sim.Sandboxes(), 1, "the call that was cut did nothing")
	})
}

func TestDownAndUp(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		_, err := n.client.Version(n.ctx)
		require.NoError(n, err)
		n.sim.Down()
		synctest.Wait()
		_, err = n.client.Version(n.ctx)
		require.True(n, cri.IsUnavailable(err), "%v", err)
		time.Sleep(time.Minute)
		n.sim.Up()
		time.Sleep(4 * time.Second) // the longest wait between attempts to connect, and a bit
		_, err = n.client.Version(n.ctx)
		require.NoError(n, err)
	})
}

func TestReboot(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		sandbox, id := n.start(pod("p", `{"web":{"exit":{"after":"1h"}}}`))
		created := n.create(sandbox, "side", 0, pod("p", ""))
		require.Equal(n, 1, n.sim.AddressesInUse())
		n.sim.Reboot()
		synctest.Wait() // the client has noticed
		s, err := n.client.PodSandboxStatus(n.ctx, sandbox)
		require.NoError(n, err)
		require.Equal(n, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, s.GetState())
		require.Empty(n, s.GetNetwork().GetIp())
		c := n.status(id)
		require.Equal(n, runtimeapi.ContainerState_CONTAINER_EXITED, c.GetState())
		require.Equal(n, int32(255), c.GetExitCode())
		require.Equal(n, "Unknown", c.GetReason())
		require.Equal(n, runtimeapi.ContainerState_CONTAINER_CREATED, n.status(created).GetState())
		require.Zero(n, n.sim.AddressesInUse())
	})
}

func TestNetworkNotReady(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		n.sim.SetNetwork(false)
		_, err := n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
		require.ErrorContains(n, err, "cni plugin not initialized")
		host := pod("host", "")
		host.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}}
		s, err := n.client.PodSandboxStatus(n.ctx, n.run(host))
		require.NoError(n, err)
		require.Empty(n, s.GetNetwork().GetIp())
		status, err := n.client.Status(n.ctx)
		require.NoError(n, err)
		require.False(n, status.GetStatus().GetConditions()[1].GetStatus())
		n.sim.SetNetwork(true)
		n.run(pod("p", ""))
	})
}

func TestForgetLeavesNoTrace(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		seen, stop := n.watch()
		sandbox, id := n.start(pod("p", `{"web":{"exit":{"after":"1s"}}}`))
		before := len(seen())
		n.sim.Forget(sandbox)
		time.Sleep(time.Minute)
		require.Len(n, seen(), before)
		_, err := n.client.ContainerStatus(n.ctx, id)
		require.True(n, cri.IsNotFound(err))
		require.Zero(n, n.sim.AddressesInUse())
		n.start(pod("p", "")) // the names are free
		require.Error(n, stop())
	})
}

func TestUnknownContainerStaysUntilItIsStopped(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		seen, stop := n.watch()
		sandbox, id := n.start(pod("p", `{"web":{"exit":{"after":"1m"}}}`))
		before := len(seen())
		require.NoError(n, n.sim.LoseTrack(id))
		require.Error(n, n.sim.LoseTrack(id))
		time.Sleep(time.Hour)
		require.Equal(n, runtimeapi.ContainerState_CONTAINER_UNKNOWN, n.status(id).GetState())
		require.Len(n, seen(), before)
		require.NoError(n, n.client.StopContainer(n.ctx, id, time.Minute))
		require.Equal(n, runtimeapi.ContainerState_CONTAINER_EXITED, n.status(id).GetState())
		require.Equal(n, int32(255), n.status(id).GetExitCode())
		require.Equal(n, "web:STOPPED", seen()[before])
		require.NoError(n, n.client.StopPodSandbox(n.ctx, sandbox))
		require.Error(n, stop())
	})
}

func TestReadySandboxWithoutAddress(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		sandbox := n.run(pod("p", ""))
		require.NoError(n, n.sim.DropAddresses(sandbox))
		require.Error(n, n.sim.DropAddresses(sandbox))
		s, err := n.client.PodSandboxStatus(n.ctx, sandbox)
		require.NoError(n, err)
		require.Equal(n, runtimeapi.PodSandboxState_SANDBOX_READY, s.GetState())
		require.Empty(n, s.GetNetwork().GetIp())
		require.NoError(n, n.client.StopPodSandbox(n.ctx, sandbox))
		require.Zero(n, n.sim.AddressesInUse())
	})
}

func TestImages(t *testing.T) {
	broken := errors.New("registry on fire")
	cfg := crisim.Config{Images: map[string]crisim.Image{
		"there:1":       {Present: true, User: "1000:2000", Size: 42, Pinned: true},
		"slow:1":        {Pull: time.Minute, User: "nobody"},
		"broken:1":      {Err: broken},
		"private/app:1": {Auth: "me:secret"},
	}}
	simulate(t, cfg, func(n node) {
		spec := func(ref string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: ref} }
		img, err := n.client.ImageStatus(n.ctx, spec("docker.io/library/there:1"))
		require.NoError(n, err)
		require.Equal(n, []string{"docker.io/library/there:1"}, img.GetRepoTags())
		require.Equal(n, int64(1000), img.GetUid().GetValue())
		require.True(n, img.GetPinned())

		img, err = n.client.ImageStatus(n.ctx, spec("slow:1"))
		require.NoError(n, err)
		require.Nil(n, img)
		began := time.Now()
		ref, err := n.client.PullImage(n.ctx, spec("slow:1"), nil, nil)
		require.NoError(n, err)
		require.Equal(n, time.Minute, time.Since(began))
		img, err = n.client.ImageStatus(n.ctx, spec(ref))
		require.NoError(n, err)
		require.Equal(n, "nobody", img.GetUsername())

		_, err = n.client.PullImage(n.ctx, spec("broken:1"), nil, nil)
		require.EqualError(n, err, "PullImage broken:1: registry on fire")
		_, err = n.client.PullImage(n.ctx, spec("private/app:1"), nil, nil)
		require.ErrorContains(n, err, "authorization failed")
		_, err = n.client.PullImage(n.ctx, spec("private/app:1"), &runtimeapi.AuthConfig{Username: "me", Password: "secret"}, nil)
		require.NoError(n, err)

		all, err := n.client.ListImages(n.ctx)
		require.NoError(n, err)
		require.Len(n, all, 3)
		require.NoError(n, n.client.RemoveImage(n.ctx, spec("slow:1")))
		require.NoError(n, n.client.RemoveImage(n.ctx, spec("slow:1")))
		img, err = n.client.ImageStatus(n.ctx, spec("slow:1"))
		require.NoError(n, err)
		require.Nil(n, img)
	})
}

func TestCallLogAsJSON(t *testing.T) {
	var out bytes.Buffer
	cfg := crisim.Config{CallLog: &out, Latency: map[string]crisim.Latency{"RunPodSandbox": crisim.Fixed(time.Second)}}
	simulate(t, cfg, func(n node) {
		id := n.run(pod("p", ""))
		_, err := n.client.ContainerStatus(n.ctx, "nope")
		require.Error(n, err)
		synctest.Wait()
		lines := json.NewDecoder(&out)
		var first, second map[string]any
		require.NoError(n, lines.Decode(&first))
		require.NoError(n, lines.Decode(&second))
		require.Equal(n, map[string]any{
			"method": "RunPodSandbox", "uid": "uid-p", "namespace": "default", "pod": "p", "object": id,
			"start_ns": 0.0, "end_ns": 1e9, "in_flight": 1.0, "code": "OK",
		}, first)
		require.Equal(n, "NotFound", second["code"])
		require.ErrorIs(n, lines.Decode(&first), io.EOF)
	})
}

func TestCallLogIsBounded(t *testing.T) {
	simulate(t, crisim.Config{CallLimit: 3}, func(n node) {
		for range 5 {
			_, err := n.client.Version(n.ctx)
			require.NoError(n, err)
		}
		_, err := n.client.Status(n.ctx)
		require.NoError(n, err)
		calls := n.sim.Calls(nil)
		require.Len(n, calls, 3)
		require.Equal(n, "Status", calls[2].Method)
		n.sim.ForgetCalls()
		require.Empty(n, n.sim.Calls(nil))
	})
}

// memoryLogs keeps log files in memory.
type memoryLogs map[string]*bytes.Buffer

func (m memoryLogs) Open(path string) (io.WriteCloser, error) {
	if m[path] == nil {
		m[path] = &bytes.Buffer{}
	}
	return nopCloser{m[path]}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestLogLines(t *testing.T) {
	logs := memoryLogs{}
	simulate(t, crisim.Config{Logs: logs}, func(n node) {
		began := time.Now()
		_, id := n.start(pod("p", `{"web":{"log":[{"text":"hello"},{"text":"tick","every":"1s","count":2,"stream":"stderr"}],"exit":{"after":"5s"}}}`))
		require.NoError(n, n.client.ReopenContainerLog(n.ctx, id))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		at := func(d time.Duration) string { return began.Add(d).Format(time.RFC3339Nano) }
		require.Equal(n, at(0)+" stdout F hello\n"+at(0)+" stderr F tick\n"+at(time.Second)+" stderr F tick\n",
			logs["/var/log/pods/p/web.log"].String())
		require.Error(n, n.client.ReopenContainerLog(n.ctx, id))
	})
}
