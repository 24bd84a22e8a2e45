package critest

import (
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

var sandboxContract = []contract{
	{"sandbox/is ready and says what it was made from", func(e *env) {
		p := e.run(waits)
		s := e.sandboxStatus(p)
		require.Equal(e, p.id, s.GetId())
		require.Equal(e, runtimeapi.PodSandboxState_SANDBOX_READY, s.GetState())
		require.Equal(e, p.config.GetMetadata().GetUid(), s.GetMetadata().GetUid())
		require.Equal(e, p.config.GetLabels(), s.GetLabels())
		require.Equal(e, p.config.GetAnnotations(), s.GetAnnotations())
		require.Positive(e, s.GetCreatedAt())
		if e.HostNetwork {
			require.Empty(e, s.GetNetwork().GetIp())
		} else {
			require.NotEmpty(e, s.GetNetwork().GetIp())
		}
	}},
	{"sandbox/name is taken while it exists", func(e *env) {
		p := e.run(waits)
		_, err := e.Client.RunPodSandbox(e.ctx, p.config, "")
		require.True(e, cri.IsAlreadyExists(err), "%v", err)
		holder, ok := cri.ReservedFor(err)
		require.True(e, ok, "%v", err)
		require.Equal(e, p.id, holder)
		require.NoError(e, e.Client.StopPodSandbox(e.ctx, p.id))
		_, err = e.Client.RunPodSandbox(e.ctx, p.config, "")
		require.True(e, cri.IsAlreadyExists(err), "stopped, but there: %v", err)
		require.NoError(e, e.Client.RemovePodSandbox(e.ctx, p.id))
		e.runAgain(p)
	}},
	{"sandbox/another attempt is another name", func(e *env) {
		p := e.run(waits)
		first := p.id
		p.config.Metadata.Attempt++
		e.runAgain(p)
		require.NotEqual(e, first, p.id)
	}},
	{"sandbox/without metadata is refused", func(e *env) {
		_, err := e.Client.RunPodSandbox(e.ctx, &runtimeapi.PodSandboxConfig{}, "")
		require.Error(e, err)
	}},
	{"sandbox/unknown handler is refused and frees the name", func(e *env) {
		p := e.newPod(waits)
		_, err := e.Client.RunPodSandbox(e.ctx, p.config, "no-such-handler")
		require.ErrorContains(e, err, "no-such-handler")
		e.runAgain(p)
	}},
	{"sandbox/stop ends containers and the network", func(e *env) {
		p, id := e.start(waits)
		require.NoError(e, e.Client.StopPodSandbox(e.ctx, p.id))
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_EXITED, e.status(id).GetState())
		require.Equal(e, int32(137), e.status(id).GetExitCode())
		e.until("sandbox is not ready", func() bool {
			return e.sandboxStatus(p).GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		})
		require.Empty(e, e.sandboxStatus(p).GetNetwork().GetIp())
	}},
	{"sandbox/stopped takes no container", func(e *env) {
		p := e.run(waits)
		created := e.create(p, waits, 0)
		require.NoError(e, e.Client.StopPodSandbox(e.ctx, p.id))
		config := e.container(waits, 1)
		_, err := e.Client.CreateContainer(e.ctx, p.id, config, p.config)
		require.Error(e, err)
		require.Error(e, e.Client.StartContainer(e.ctx, created))
	}},
	{"sandbox/remove takes running containers with it", func(e *env) {
		p, id := e.start(waits)
		require.NoError(e, e.Client.RemovePodSandbox(e.ctx, p.id))
		_, err := e.Client.ContainerStatus(e.ctx, id)
		require.True(e, cri.IsNotFound(err), "%v", err)
		_, err = e.Client.PodSandboxStatus(e.ctx, p.id)
		require.True(e, cri.IsNotFound(err), "%v", err)
	}},
	{"sandbox/survives a restart of the runtime", func(e *env) {
		if e.Restart == nil {
			e.Skip("this runtime cannot be restarted")
		}
		p, id := e.start(waits)
		created := e.create(p, waits, 1)
		e.Restart()
		require.Equal(e, runtimeapi.PodSandboxState_SANDBOX_READY, e.sandboxStatus(p).GetState())
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_RUNNING, e.status(id).GetState())
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_CREATED, e.status(created).GetState())
		_, err := e.Client.RunPodSandbox(e.ctx, p.config, "")
		require.True(e, cri.IsAlreadyExists(err), "%v", err)
		require.NoError(e, e.Client.StartContainer(e.ctx, created))
		require.NoError(e, e.Client.StopPodSandbox(e.ctx, p.id))
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_EXITED, e.status(id).GetState())
	}},
}
