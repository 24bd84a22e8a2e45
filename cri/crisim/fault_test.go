package crisim_test

import (
	"context"
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

func TestFailDoesNothingAndFreesTheName(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		n.sim.Inject(crisim.Fault{Method: "RunPodSandbox", Pod: "default/p", Count: 2, Do: crisim.Fail(codes.Unknown, "no space left on device")})
		for range 2 {
			_, err := n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
			require.EqualError(n, err, "RunPodSandbox default/p: no space left on device")
			require.Empty(n, n.sim.Sandboxes())
		}
		n.run(pod("p", ""))
	})
}

func TestFaultMatchesOnlyWhatItNames(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		f := n.sim.Inject(crisim.Fault{Method: "CreateContainer", Pod: "uid-a", Container: "web", Skip: 1, Do: crisim.Fail(codes.Internal, "boom")})
		a, b := pod("a", ""), pod("b", "")
		sandboxA, sandboxB := n.run(a), n.run(b)
		n.create(sandboxA, "web", 0, a) // skipped
		n.create(sandboxA, "other", 0, a)
		n.create(sandboxB, "web", 0, b)
		_, err := n.client.CreateContainer(n.ctx, sandboxA, &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: 1}, Image: &runtimeapi.ImageSpec{Image: "app:1"},
		}, a)
		require.Equal(n, codes.Internal, status.Code(err))
		require.Equal(n, 1, f.Hits())
		n.sim.ClearFaults()
		n.create(sandboxA, "web", 1, a)
	})
}

func TestLostReply(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		n.sim.Inject(crisim.Fault{Method: "RunPodSandbox", Count: 1, Do: crisim.LoseReply()})
		_, err := n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
		require.True(n, cri.IsUnavailable(err))
		require.True(n, cri.IsUncertain(err))
		made := n.sim.Sandboxes()
		require.Len(n, made, 1)

		_, err = n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
		require.True(n, cri.IsAlreadyExists(err))
		holder, ok := cri.ReservedFor(err)
		require.True(n, ok)
		require.Equal(n, made[0].Status.GetId(), holder)
	})
}

func TestHangUntilDeadlineDoesNothing(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		n.sim.Inject(crisim.Fault{Method: "RunPodSandbox", Do: crisim.Hang()})
		began := time.Now()
		_, err := n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
		require.EqualError(n, err, "RunPodSandbox default/p: no answer from the container runtime within 4m0s")
		require.Equal(n, 4*time.Minute, time.Since(began))
		synctest.Wait()
		require.Empty(n, n.sim.Sandboxes())
	})
}

func TestHangUntilReleasedGoesOn(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		f := n.sim.Inject(crisim.Fault{Method: "RunPodSandbox", Do: crisim.Hang()})
		time.AfterFunc(time.Minute, f.Release)
		began := time.Now()
		n.run(pod("p", ""))
		require.Equal(n, time.Minute, time.Since(began))
		f.Release() // twice is once
	})
}

func TestLateEffectComesAfterTheCallerIsGone(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		n.sim.Inject(crisim.Fault{Method: "RunPodSandbox", Count: 1, Do: crisim.Late(10 * time.Second)})
		ctx, cancel := context.WithTimeout(n.ctx, time.Second)
		defer cancel()
		_, err := n.client.RunPodSandbox(ctx, pod("p", ""), "")
		require.True(n, cri.IsDeadline(err) && cri.IsUncertain(err), "%v", err)
		require.Empty(n, n.sim.Sandboxes())
		_, err = n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
		require.True(n, cri.IsAlreadyExists(err), "the name is reserved from the call's arrival on: %v", err)
		time.Sleep(10 * time.Second)
		require.Len(n, n.sim.Sandboxes(), 1)
	})
}

func TestSlowReplyIsAnOldAnswer(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		_, id := n.start(pod("p", ""))
		n.sim.Inject(crisim.Fault{Method: "ContainerStatus", Count: 1, Do: crisim.SlowReply(2 * time.Second)})
		time.AfterFunc(time.Second, func() { _ = n.sim.Kill(id, crisim.Exit{Code: 1}) })
		require.Equal(n, runtimeapi.ContainerState_CONTAINER_RUNNING, n.status(id).GetState())
		require.Equal(n, runtimeapi.ContainerState_CONTAINER_EXITED, n.status(id).GetState())
	})
}

func TestLatencySlotsAndSerialSection(t *testing.T) {
	const pods = 6
	for name, tc := range map[string]struct {
		cfg  crisim.Config
		want time.Duration
	}{
		"side by side":   {crisim.Config{}, time.Second},
		"two slots":      {crisim.Config{Slots: 2}, 3 * time.Second},
		"serial section": {crisim.Config{Serial: map[string]time.Duration{"RunPodSandbox": 100 * time.Millisecond}}, time.Second + pods*100*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Latency = map[string]crisim.Latency{"RunPodSandbox": crisim.Fixed(time.Second)}
			simulate(t, tc.cfg, func(n node) {
				began := time.Now()
				results := make(chan error, pods)
				for i := range pods {
					go func() {
						_, err := n.client.RunPodSandbox(n.ctx, pod(string(rune('a'+i)), ""), "")
						results <- err
					}()
				}
				for range pods {
					require.NoError(n, <-results)
				}
				require.Equal(n, tc.want, time.Since(began))
				calls := n.sim.Calls(crisim.Method("RunPodSandbox"))
				require.Len(n, calls, pods)
				require.Equal(n, pods, calls[pods-1].InFlight)
			})
		})
	}
}

func TestNameIsReservedWhileTheCallIsUnderWay(t *testing.T) {
	simulate(t, crisim.Config{Latency: map[string]crisim.Latency{"RunPodSandbox": crisim.Fixed(time.Second)}}, func(n node) {
		first := make(chan error, 1)
		go func() {
			_, err := n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
			first <- err
		}()
		time.Sleep(time.Millisecond)
		began := time.Now()
		_, err := n.client.RunPodSandbox(n.ctx, pod("p", ""), "")
		require.True(n, cri.IsAlreadyExists(err))
		require.Zero(n, time.Since(began))
		require.NoError(n, <-first)
	})
}

func TestRemoveDuringStartIsRefused(t *testing.T) {
	simulate(t, crisim.Config{Latency: map[string]crisim.Latency{"StartContainer": crisim.Fixed(time.Second)}}, func(n node) {
		config := pod("p", "")
		id := n.create(n.run(config), "web", 0, config)
		started := make(chan error, 1)
		go func() { started <- n.client.StartContainer(n.ctx, id) }()
		time.Sleep(time.Millisecond)
		require.ErrorContains(n, n.client.RemoveContainer(n.ctx, id), "starting state")
		require.ErrorContains(n, n.client.StartContainer(n.ctx, id), "already in starting state")
		require.NoError(n, <-started)
		require.NoError(n, n.client.RemoveContainer(n.ctx, id))
	})
}
