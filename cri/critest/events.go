package critest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

var eventContract = []contract{
	{"events/of a life, or the fact that there are none", func(e *env) {
		if !e.Events {
			err := e.Client.GetContainerEvents(e.ctx, func(*runtimeapi.ContainerEventResponse) {})
			require.ErrorIs(e, err, cri.ErrUnsupported)
			return
		}
		seen, stop := e.watch()
		p, id := e.start(exits3)
		e.exited(id)
		require.NoError(e, e.Client.StopPodSandbox(e.ctx, p.id))
		require.NoError(e, e.Client.RemovePodSandbox(e.ctx, p.id))
		life := []string{"CREATED", "STARTED", "STOPPED", "DELETED"}
		e.until("all events have come", func() bool { return len(seen(id)) >= len(life) && len(seen(p.id)) >= len(life) })
		require.Equal(e, life, seen(id))
		require.Equal(e, life, seen(p.id))
		require.Error(e, stop())
	}},
	{"events/carry the state of the pod", func(e *env) {
		if !e.Events {
			e.Skip("no events")
		}
		var mu sync.Mutex
		var stopped *runtimeapi.ContainerEventResponse
		ctx, cancel := context.WithCancel(e.ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- e.Client.GetContainerEvents(ctx, func(ev *runtimeapi.ContainerEventResponse) {
				mu.Lock()
				defer mu.Unlock()
				if ev.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT && len(ev.GetContainersStatuses()) > 0 {
					stopped = ev
				}
			})
		}()
		p, id := e.start(exits3)
		e.until("it has stopped", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return stopped.GetContainerId() == id
		})
		require.Equal(e, p.id, stopped.GetPodSandboxStatus().GetId())
		require.Equal(e, p.config.GetMetadata().GetUid(), stopped.GetPodSandboxStatus().GetMetadata().GetUid())
		require.Equal(e, int32(3), stopped.GetContainersStatuses()[0].GetExitCode())
		cancel()
		require.ErrorIs(e, <-ended, context.Canceled)
	}},
	{"events/stream ends with the runtime and can be opened again", func(e *env) {
		if !e.Events || e.Restart == nil {
			e.Skip("no events, or no restart")
		}
		_, stop := e.watch()
		e.run(waits)
		e.Restart()
		require.Error(e, stop())
		seen, stop := e.watch()
		p := e.run(waits)
		e.until("an event has come", func() bool { return slices.Contains(seen(p.id), "STARTED") })
		require.Error(e, stop())
	}},
}

// watch reads events in the background. seen gives the kinds of events that named an object; stop ends it.
func (e *env) watch() (seen func(id string) []string, stop func() error) {
	ctx, cancel := context.WithCancel(e.ctx)
	var mu sync.Mutex
	kinds := map[string][]string{}
	ended := make(chan error, 1)
	go func() {
		ended <- e.Client.GetContainerEvents(ctx, func(ev *runtimeapi.ContainerEventResponse) {
			mu.Lock()
			defer mu.Unlock()
			kind := strings.TrimSuffix(strings.TrimPrefix(ev.GetContainerEventType().String(), "CONTAINER_"), "_EVENT")
			kinds[ev.GetContainerId()] = append(kinds[ev.GetContainerId()], kind)
		})
	}()
	seen = func(id string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(kinds[id])
	}
	return seen, func() error { cancel(); return <-ended }
}
