package critest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

// unknownID has the form of an ID and belongs to nothing.
const unknownID = "0000000000000000000000000000000000000000000000000000000000000000"

// idCall is a call on one object.
type idCall struct {
	name    string
	sandbox bool // the object is a sandbox, otherwise a running container
	call    func(ctx context.Context, e *env, id string) error
	gone    bool // an unknown ID is success, otherwise NotFound
	once    bool // a repetition is an error
}

var idCalls = []idCall{
	{"StopPodSandbox", true, func(ctx context.Context, e *env, id string) error { return e.Client.StopPodSandbox(ctx, id) }, true, false},
	{"RemovePodSandbox", true, func(ctx context.Context, e *env, id string) error { return e.Client.RemovePodSandbox(ctx, id) }, true, false},
	{"PodSandboxStatus", true, func(ctx context.Context, e *env, id string) error {
		_, err := e.Client.PodSandboxStatus(ctx, id)
		return err
	}, false, false},
	{"StartContainer", false, func(ctx context.Context, e *env, id string) error { return e.Client.StartContainer(ctx, id) }, false, true},
	{"StopContainer", false, func(ctx context.Context, e *env, id string) error {
		return e.Client.StopContainer(ctx, id, 10*time.Second)
	}, true, false},
	{"RemoveContainer", false, func(ctx context.Context, e *env, id string) error { return e.Client.RemoveContainer(ctx, id) }, true, false},
	{"ContainerStatus", false, func(ctx context.Context, e *env, id string) error {
		_, err := e.Client.ContainerStatus(ctx, id)
		return err
	}, false, false},
	{"UpdateContainerResources", false, func(ctx context.Context, e *env, id string) error {
		return e.Client.UpdateContainerResources(ctx, id, &runtimeapi.LinuxContainerResources{CpuShares: 100})
	}, false, false},
	{"ExecSync", false, func(ctx context.Context, e *env, id string) error {
		_, err := e.Client.ExecSync(ctx, id, e.Programs.ExecOut, 10*time.Second)
		return err
	}, false, false},
}

// everyCall are the contracts that hold for each call alike.
func everyCall() []contract {
	var all []contract
	for _, call := range idCalls {
		all = append(all,
			contract{"every call/" + call.name + "/repeated", call.repeated},
			contract{"every call/" + call.name + "/unknown ID", call.unknown},
			contract{"every call/" + call.name + "/cancelled and late before it is sent", call.notSent},
			contract{"every call/" + call.name + "/after a restart", call.afterRestart},
		)
	}
	return append(all, contract{"every call/RunPodSandbox/cancelled before it is sent", func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		p := e.newPod(waits)
		_, err := e.Client.RunPodSandbox(ctx, p.config, "")
		require.Equal(e, cri.Cancelled, cri.Classify(err))
		require.False(e, cri.IsUncertain(err))
		e.runAgain(p)
	}}, contract{"every call/RunPodSandbox/given up on its way leaves something that can be cleaned up", givenUp})
}

// object makes what the call is about, fit for one successful call.
func (c idCall) object(e *env) string {
	if c.sandbox {
		return e.run(waits).id
	}
	p := e.run(waits)
	id := e.create(p, waits, 0)
	if !c.once {
		require.NoError(e, e.Client.StartContainer(e.ctx, id))
	}
	return id
}

func (c idCall) repeated(e *env) {
	id := c.object(e)
	require.NoError(e, c.call(e.ctx, e, id))
	err := c.call(e.ctx, e, id)
	if c.once {
		require.Error(e, err)
		return
	}
	require.NoError(e, err)
}

func (c idCall) unknown(e *env) {
	err := c.call(e.ctx, e, unknownID)
	if c.gone {
		require.NoError(e, err)
		return
	}
	require.True(e, cri.IsNotFound(err), "%v", err)
}

func (c idCall) notSent(e *env) {
	id := c.object(e)
	cancelled, cancel := context.WithCancel(e.ctx)
	cancel()
	err := c.call(cancelled, e, id)
	require.Equal(e, cri.Cancelled, cri.Classify(err), "%v", err)
	require.False(e, cri.IsUncertain(err))
	late, cancel := context.WithDeadline(e.ctx, time.Now().Add(-time.Second))
	defer cancel()
	err = c.call(late, e, id)
	require.Equal(e, cri.Deadline, cri.Classify(err), "%v", err)
	require.False(e, cri.IsUncertain(err))
	require.NoError(e, c.call(e.ctx, e, id), "nothing had happened")
}

func (c idCall) afterRestart(e *env) {
	if e.Restart == nil {
		e.Skip("this runtime cannot be restarted")
	}
	id := c.object(e)
	e.Restart()
	require.NoError(e, c.call(e.ctx, e, id))
}

// givenUp cancels RunPodSandbox at several moments. Whatever is left is found by its labels and can be removed, and then
// the name is free.
func givenUp(e *env) {
	for _, after := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		p := e.newPod(waits)
		ctx, cancel := context.WithTimeout(e.ctx, after)
		id, err := e.Client.RunPodSandbox(ctx, p.config, "")
		cancel()
		if err == nil {
			e.pods = append(e.pods, &pod{id: id, config: p.config})
			continue
		}
		e.until(fmt.Sprintf("the name is free again after giving up after %s", after), func() bool {
			for _, left := range e.sandboxes(&runtimeapi.PodSandboxFilter{LabelSelector: uidLabel(p)}) {
				require.NoError(e, e.Client.StopPodSandbox(e.ctx, left))
				require.NoError(e, e.Client.RemovePodSandbox(e.ctx, left))
			}
			id, err := e.Client.RunPodSandbox(e.ctx, p.config, "")
			if err != nil {
				require.True(e, cri.IsAlreadyExists(err), "%v", err)
				return false
			}
			e.pods = append(e.pods, &pod{id: id, config: p.config})
			return true
		})
	}
}
