package critest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

var stopContract = []contract{
	{"stop/lets the process end by itself", func(e *env) {
		id := e.settled(waits)
		require.NoError(e, e.Client.StopContainer(e.ctx, id, time.Minute))
		s := e.status(id)
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_EXITED, s.GetState(), "exited when the call returns")
		require.Zero(e, s.GetExitCode())
	}},
	{"stop/kills after the grace period", func(e *env) {
		id := e.settled(stubborn)
		began := time.Now()
		require.NoError(e, e.Client.StopContainer(e.ctx, id, time.Second))
		require.GreaterOrEqual(e, time.Since(began), time.Second)
		require.Equal(e, int32(137), e.status(id).GetExitCode())
		require.Equal(e, "Error", e.status(id).GetReason())
	}},
	{"stop/with grace 0 kills", func(e *env) {
		_, id := e.start(stubborn)
		require.NoError(e, e.Client.StopContainer(e.ctx, id, 0))
		require.Equal(e, int32(137), e.status(id).GetExitCode())
	}},
	{"stop/a second one with a shorter grace is obeyed", func(e *env) {
		id := e.settled(stubborn)
		first := make(chan error, 1)
		go func() { first <- e.Client.StopContainer(e.ctx, id, time.Hour) }()
		require.NoError(e, e.Client.StopContainer(e.ctx, id, time.Second))
		require.NoError(e, <-first)
		require.Equal(e, int32(137), e.status(id).GetExitCode())
	}},
	{"stop/given up leaves the process alone", func(e *env) {
		id := e.settled(stubborn)
		ctx, cancel := context.WithTimeout(e.ctx, 300*time.Millisecond)
		defer cancel()
		err := e.Client.StopContainer(ctx, id, time.Minute)
		require.True(e, cri.IsDeadline(err), "%v", err)
		require.True(e, cri.IsUncertain(err))
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_RUNNING, e.status(id).GetState())
	}},
	{"start/given up ends, sooner or later, in a state that tells", func(e *env) {
		for _, after := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond} {
			id := e.create(e.run(waits), waits, 0)
			ctx, cancel := context.WithTimeout(e.ctx, after)
			err := e.Client.StartContainer(ctx, id)
			cancel()
			e.until("the runtime has finished with it", func() bool {
				s := e.status(id)
				switch s.GetState() {
				case runtimeapi.ContainerState_CONTAINER_RUNNING:
					return true
				case runtimeapi.ContainerState_CONTAINER_EXITED:
					require.Error(e, err)
					require.Equal(e, "StartError", s.GetReason())
					return true
				default: // not begun, or under way
					err := e.Client.StartContainer(e.ctx, id)
					return err == nil
				}
			})
		}
		e.removeAll()
	}},
	{"stop/of a created container leaves it created", func(e *env) {
		id := e.create(e.run(waits), waits, 0)
		require.NoError(e, e.Client.StopContainer(e.ctx, id, time.Second))
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_CREATED, e.status(id).GetState())
	}},
	{"stop/does not change an exited container", func(e *env) {
		_, id := e.start(exits3)
		before := e.exited(id)
		require.NoError(e, e.Client.StopContainer(e.ctx, id, time.Second))
		after := e.status(id)
		require.Equal(e, before.GetExitCode(), after.GetExitCode())
		require.Equal(e, before.GetFinishedAt(), after.GetFinishedAt())
	}},
}

// removeAll removes the pods of a case in which starts were given up. containerd (1.6.20 and 2.4.2) asks a new process for
// its number in the context of the call that made it. When that ends just then, the container is said to have failed, its
// process is kept, and neither can be removed until a restart of containerd finds it.
func (e *env) removeAll() {
	e.Helper()
	for _, p := range e.pods {
		require.NoError(e, e.Client.StopPodSandbox(e.ctx, p.id))
		err := e.Client.RemovePodSandbox(e.ctx, p.id)
		if err == nil {
			continue
		}
		require.ErrorContains(e, err, "cannot delete running task")
		require.NotNil(e, e.Restart, "only a restart helps: %v", err)
		e.Restart()
		e.until("the sandbox can be removed: "+err.Error(), func() bool { return e.Client.RemovePodSandbox(e.ctx, p.id) == nil })
	}
	e.pods = nil
}
