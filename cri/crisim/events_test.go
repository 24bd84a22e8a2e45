package crisim_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

// watch reads events in the background; the returned function waits until the stream is idle and gives the kinds seen so
// far as "object:KIND", with "sandbox" and "web" for objects.
func (n node) watch() (seen func() []string, stop func() error) {
	n.Helper()
	ctx, cancel := context.WithCancel(n.ctx)
	var mu sync.Mutex
	var got []string
	ended := make(chan error, 1)
	go func() {
		ended <- n.client.GetContainerEvents(ctx, func(e *runtimeapi.ContainerEventResponse) {
			object := "web"
			if e.GetContainerId() == e.GetPodSandboxStatus().GetId() {
				object = "sandbox"
			}
			kind := strings.TrimSuffix(strings.TrimPrefix(e.GetContainerEventType().String(), "CONTAINER_"), "_EVENT")
			mu.Lock()
			defer mu.Unlock()
			got = append(got, object+":"+kind)
		})
	}()
	synctest.Wait()
	seen = func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
	return seen, func() error { cancel(); return <-ended }
}

var lifeEvents = []string{
	"sandbox:CREATED", "sandbox:STARTED", "web:CREATED", "web:STARTED", "web:STOPPED", "sandbox:STOPPED", "web:DELETED", "sandbox:DELETED",
}

// life is a pod from its first call to its last.
func (n node) life(name string) {
	n.Helper()
	sandbox, _ := n.start(pod(name, ""))
	require.NoError(n, n.client.StopPodSandbox(n.ctx, sandbox))
	require.NoError(n, n.client.RemovePodSandbox(n.ctx, sandbox))
}

func TestEventsOfALife(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		seen, stop := n.watch()
		n.life("p")
		require.Equal(n, lifeEvents, seen())
		require.ErrorIs(n, stop(), context.Canceled)
		synctest.Wait()
		require.Zero(n, n.sim.EventStreams())
	})
}

func TestEventCarriesTheStateOfItsPod(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		var last *runtimeapi.ContainerEventResponse
		ctx, cancel := context.WithCancel(n.ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- n.client.GetContainerEvents(ctx, func(e *runtimeapi.ContainerEventResponse) { last = e })
		}()
		sandbox, id := n.start(pod("p", ""))
		require.NoError(n, n.sim.Kill(id, crisim.Exit{Code: 9}))
		synctest.Wait()
		require.Equal(n, sandbox, last.GetPodSandboxStatus().GetId())
		require.Equal(n, "uid-p", last.GetPodSandboxStatus().GetMetadata().GetUid())
		require.Len(n, last.GetContainersStatuses(), 1)
		require.Equal(n, int32(9), last.GetContainersStatuses()[0].GetExitCode())
		cancel()
		<-ended
	})
}

func TestEventsAreKeptForTheNextReader(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		n.life("old")
		time.Sleep(6 * time.Minute) // longer than they are kept
		n.life("p")
		seen, stop := n.watch()
		require.Equal(n, lifeEvents, seen())
		require.Error(n, stop())
	})
}

func TestEventFaults(t *testing.T) {
	isStart := func(e *runtimeapi.ContainerEventResponse) bool {
		return e.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
	}
	simulate(t, crisim.Config{Seed: 1}, func(n node) {
		seen, stop := n.watch()
		n.sim.SetEventFaults(crisim.EventFaults{Match: isStart, Drop: true})
		n.life("dropped")
		require.NotContains(n, seen(), "web:STARTED")
		n.sim.SetEventFaults(crisim.EventFaults{Match: isStart, Repeat: 2})
		before := len(seen())
		n.life("repeated")
		require.Len(n, seen(), before+len(lifeEvents)+2*2)

		n.sim.SetEventFaults(crisim.EventFaults{Delay: time.Second})
		before = len(seen())
		n.life("delayed")
		require.Len(n, seen(), before)
		time.Sleep(time.Second)
		require.Equal(n, lifeEvents, seen()[before:])

		n.sim.SetEventFaults(crisim.EventFaults{Shuffle: time.Second})
		before = len(seen())
		n.life("shuffled")
		time.Sleep(time.Second)
		require.ElementsMatch(n, lifeEvents, seen()[before:])
		require.NotEqual(n, lifeEvents, seen()[before:])
		require.Error(n, stop())
	})
}

func TestClosedStreams(t *testing.T) {
	simulate(t, crisim.Config{}, func(n node) {
		end := func(how func()) error {
			ended := make(chan error, 1)
			go func() { ended <- n.client.GetContainerEvents(n.ctx, func(*runtimeapi.ContainerEventResponse) {}) }()
			synctest.Wait()
			how()
			return <-ended
		}
		require.NoError(n, end(func() { n.sim.CloseEventStreams(nil) }))
		require.True(n, cri.IsUnavailable(end(n.sim.Restart)))
		f := n.sim.Inject(crisim.Fault{Method: "GetContainerEvents", Count: 3, Do: crisim.Fail(codes.Unavailable, "closed")})
		for range 3 {
			require.True(n, cri.IsUnavailable(end(func() {})))
		}
		require.Equal(n, 3, f.Hits())
	})
}
