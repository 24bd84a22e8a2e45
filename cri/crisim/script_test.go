package crisim_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

func TestExitByItself(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		at     time.Duration
		code   int32
		reason string
	}{
		"at once":          {`{"web":{"exit":{}}}`, 0, 0, "Completed"},
		"after a while":    {`{"web":{"exit":{"after":"90s","code":3}}}`, 90 * time.Second, 3, "Error"},
		"out of memory":    {`{"web":{"exit":{"after":"1s","oom":true}}}`, time.Second, 137, "OOMKilled"},
		"list of one":      {`{"web":[{"exit":{"after":"2s","code":7}}]}`, 2 * time.Second, 7, "Error"},
		"first of attempt": {`{"web":[{"exit":{"code":1}},{}]}`, 0, 1, "Error"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, crisim.Config{}, func(n node) {
				_, id := n.start(pod("p", tc.script))
				if tc.at > 0 {
					time.Sleep(tc.at - time.Nanosecond)
					synctest.Wait()
					require.Equal(n, runtimeapi.ContainerState_CONTAINER_RUNNING, n.status(id).GetState())
					time.Sleep(time.Nanosecond)
				}
				synctest.Wait()
				s := n.status(id)
				require.Equal(n, runtimeapi.ContainerState_CONTAINER_EXITED, s.GetState())
				require.Equal(n, tc.code, s.GetExitCode())
				require.Equal(n, tc.reason, s.GetReason())
				require.Equal(n, int64(tc.at), s.GetFinishedAt()-s.GetStartedAt())
			})
		})
	}
}

func TestAttemptsTakeTheNextScriptAndTheLastStays(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		config := pod("p", `{"web":[{"exit":{"code":1}},{"exit":{"code":2}}]}`)
		sandbox := n.run(config)
		for attempt, want := range []int32{1, 2, 2} {
			id := n.create(sandbox, "web", uint32(attempt), config)
			require.NoError(n, n.client.StartContainer(n.ctx, id))
			synctest.Wait()
			require.Equal(n, want, n.status(id).GetExitCode())
		}
	})
}

func TestStop(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		grace  time.Duration
		takes  time.Duration
		code   int32
	}{
		"default ends at once with 143": {``, 30 * time.Second, 0, 143},
		"grace 0 kills":                 {``, 0, 0, 137},
		"graceful":                      {`{"web":{"term":{"after":"3s"}}}`, 30 * time.Second, 3 * time.Second, 0},
		"too slow":                      {`{"web":{"term":{"after":"40s","code":1}}}`, 30 * time.Second, 30 * time.Second, 137},
		"ignored":                       {`{"web":{"term":{"ignore":true}}}`, 10 * time.Second, 10 * time.Second, 137},
		"fraction is rounded up":        {`{"web":{"term":{"ignore":true}}}`, 1500 * time.Millisecond, 2 * time.Second, 137},
		"slow to kill":                  {`{"web":{"kill":{"after":"20s"}}}`, 0, 20 * time.Second, 137},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, crisim.Config{}, func(n node) {
				_, id := n.start(pod("p", tc.script))
				began := time.Now()
				require.NoError(n, n.client.StopContainer(n.ctx, id, tc.grace))
				require.Equal(n, tc.takes, time.Since(began))
				require.Equal(n, tc.code, n.status(id).GetExitCode())
			})
		})
	}
}

func TestSecondStopWithShorterGraceEndsSooner(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		_, id := n.start(pod("p", `{"web":{"term":{"ignore":true}}}`))
		began := time.Now()
		first := make(chan error, 1)
		go func() { first <- n.client.StopContainer(n.ctx, id, time.Minute) }()
		time.Sleep(5 * time.Second)
		require.NoError(n, n.client.StopContainer(n.ctx, id, 2*time.Second))
		require.NoError(n, <-first)
		require.Equal(n, 7*time.Second, time.Since(began))
	})
}

func TestUnkillableContainerHoldsItsSandbox(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		sandbox, id := n.start(pod("p", `{"web":{"kill":{"ignore":true}}}`))
		err := n.client.StopPodSandbox(n.ctx, sandbox)
		require.True(n, cri.IsDeadline(err), "%v", err)
		require.NoError(n, n.sim.Kill(id, crisim.Exit{Signal: 9}))
		require.NoError(n, n.client.StopPodSandbox(n.ctx, sandbox))
	})
}

func TestStartFailure(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		config := pod("p", `{"web":{"start":{"error":"exec: \"nope\": executable file not found in $PATH"}}}`)
		id := n.create(n.run(config), "web", 0, config)
		err := n.client.StartContainer(n.ctx, id)
		require.ErrorContains(n, err, "executable file not found")
		s := n.status(id)
		require.Equal(n, runtimeapi.ContainerState_CONTAINER_EXITED, s.GetState())
		require.Equal(n, int32(128), s.GetExitCode())
		require.Equal(n, "StartError", s.GetReason())
		require.Error(n, n.client.StartContainer(n.ctx, id), "a container starts once")
	})
}

func TestExecScript(t *testing.T) {
	const script = `{"web":{"exec":[
		{"command":"slow","after":"5s"},
		{"command":"healthy","from":"30s","code":1,"stderr":"gone"},
		{"command":"healthy","stdout":"fine"}]}}`
	simulate(t, crisim.Config{}, func(n node) {
		_, id := n.start(pod("p", script))
		healthy := []string{"cat", "/tmp/healthy"}
		got, err := n.client.ExecSync(n.ctx, id, healthy, time.Second)
		require.NoError(n, err)
		require.Equal(n, cri.ExecResult{Stdout: []byte("fine")}, got)

		began := time.Now()
		_, err = n.client.ExecSync(n.ctx, id, []string{"slow"}, time.Second)
		require.True(n, cri.IsDeadline(err), "%v", err)
		require.Equal(n, time.Second, time.Since(began))

		time.Sleep(30 * time.Second)
		got, err = n.client.ExecSync(n.ctx, id, healthy, time.Second)
		require.NoError(n, err)
		require.Equal(n, cri.ExecResult{Stderr: []byte("gone"), ExitCode: 1}, got)

		got, err = n.client.ExecSync(n.ctx, id, []string{"true"}, 0)
		require.NoError(n, err)
		require.Zero(n, got)
	})
}

func TestBadScriptIsRefusedWithItsPlace(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"not JSON":          {`{`, "unexpected EOF"},
		"unknown field":     {`{"web":{"exits":{}}}`, `container "web": json: unknown field "exits"`},
		"duration a number": {`{"web":{"exit":{"after":5}}}`, `duration 5: want a string`},
		"negative duration": {`{"web":{"exit":{"after":"-5s"}}}`, `duration "-5s" is negative`},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, crisim.Config{}, func(n node) {
				_, err := n.client.RunPodSandbox(n.ctx, pod("p", tc.script), "")
				require.Equal(n, codes.InvalidArgument, status.Code(err))
				require.ErrorContains(n, err, "RunPodSandbox default/p: pod annotation sim.flowlet.dev/containers: ")
				require.ErrorContains(n, err, tc.want)
			})
		})
	}
}
