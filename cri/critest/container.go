package critest

import (
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

var containerContract = []contract{
	{"container/created, running, exited", func(e *env) {
		p := e.run(exits3)
		id := e.create(p, exits3, 0)
		s := e.status(id)
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_CREATED, s.GetState())
		require.Positive(e, s.GetCreatedAt())
		require.Zero(e, s.GetStartedAt())
		require.Equal(e, "kept", s.GetAnnotations()["note"])
		require.Equal(e, "main", s.GetMetadata().GetName())
		require.NoError(e, e.Client.StartContainer(e.ctx, id))
		s = e.exited(id)
		require.Equal(e, int32(3), s.GetExitCode())
		require.Equal(e, "Error", s.GetReason())
		require.LessOrEqual(e, s.GetCreatedAt(), s.GetStartedAt())
		// A runtime may note the time of the start when the process has ended already.
		require.LessOrEqual(e, s.GetStartedAt(), s.GetFinishedAt()+time.Second.Nanoseconds())
	}},
	{"container/exit code 0 is Completed", func(e *env) {
		_, id := e.start(exits0)
		s := e.exited(id)
		require.Zero(e, s.GetExitCode())
		require.Equal(e, "Completed", s.GetReason())
	}},
	{"container/name is taken while it exists", func(e *env) {
		p, id := e.start(exits0)
		e.exited(id)
		config := e.container(exits0, 0)
		_, err := e.Client.CreateContainer(e.ctx, p.id, config, p.config)
		require.True(e, cri.IsAlreadyExists(err), "%v", err)
		holder, ok := cri.ReservedFor(err)
		require.True(e, ok, "%v", err)
		require.Equal(e, id, holder)
		next := e.create(p, exits0, 1)
		require.NotEqual(e, id, next)
		require.NoError(e, e.Client.RemoveContainer(e.ctx, id))
		e.create(p, exits0, 0)
	}},
	{"container/starts once", func(e *env) {
		_, id := e.start(waits)
		require.Error(e, e.Client.StartContainer(e.ctx, id), "running")
		require.NoError(e, e.Client.StopContainer(e.ctx, id, 0))
		require.Error(e, e.Client.StartContainer(e.ctx, id), "exited")
	}},
	{"container/that cannot start is exited with 128", func(e *env) {
		p := e.run(cannotStart)
		id := e.create(p, cannotStart, 0)
		err := e.Client.StartContainer(e.ctx, id)
		require.ErrorContains(e, err, "no such file or directory")
		s := e.exited(id)
		require.Equal(e, int32(128), s.GetExitCode())
		require.Equal(e, "StartError", s.GetReason())
		require.NotEmpty(e, s.GetMessage())
		require.NotZero(e, s.GetFinishedAt())
	}},
	{"container/in an unknown sandbox is NotFound", func(e *env) {
		config := e.newPod(waits).config
		_, err := e.Client.CreateContainer(e.ctx, unknownID, e.container(waits, 0), config)
		require.True(e, cri.IsNotFound(err), "%v", err)
	}},
	{"container/of an absent image is refused and frees the name", func(e *env) {
		p := e.run(waits)
		config := e.container(waits, 0)
		config.Image = &runtimeapi.ImageSpec{Image: e.Missing}
		_, err := e.Client.CreateContainer(e.ctx, p.id, config, p.config)
		require.Error(e, err)
		e.create(p, waits, 0)
	}},
	{"container/remove kills what runs", func(e *env) {
		_, id := e.start(stubborn)
		require.NoError(e, e.Client.RemoveContainer(e.ctx, id))
		_, err := e.Client.ContainerStatus(e.ctx, id)
		require.True(e, cri.IsNotFound(err), "%v", err)
	}},
	{"container/exec", func(e *env) {
		_, id := e.start(answers)
		got, err := e.Client.ExecSync(e.ctx, id, e.Programs.ExecOut, 30*time.Second)
		require.NoError(e, err)
		require.Equal(e, "1 out\n", string(got.Stdout))
		require.Zero(e, got.ExitCode)
		got, err = e.Client.ExecSync(e.ctx, id, e.Programs.ExecFail, 30*time.Second)
		require.NoError(e, err, "a code is a result")
		require.Equal(e, "err\n", string(got.Stderr))
		require.Equal(e, int32(7), got.ExitCode)
		_, err = e.Client.ExecSync(e.ctx, id, e.Programs.ExecSlow, time.Second)
		require.True(e, cri.IsDeadline(err), "%v", err)
		require.Equal(e, runtimeapi.ContainerState_CONTAINER_RUNNING, e.status(id).GetState())
		require.NoError(e, e.Client.StopContainer(e.ctx, id, 0))
		_, err = e.Client.ExecSync(e.ctx, id, e.Programs.ExecOut, time.Second)
		require.Error(e, err)
	}},
	{"container/log", func(e *env) {
		if e.LogRoot == "" {
			e.Skip("no place for logs")
		}
		_, id := e.start(says)
		path := e.status(id).GetLogPath()
		e.until("the line is in "+path, func() bool {
			text, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(text), " stdout F ") && strings.Contains(string(text), "hello\n")
		})
		require.NoError(e, os.Rename(path, path+".1"))
		require.NoError(e, e.Client.ReopenContainerLog(e.ctx, id))
		require.FileExists(e, path)
		require.NoError(e, e.Client.StopContainer(e.ctx, id, 0))
		require.Error(e, e.Client.ReopenContainerLog(e.ctx, id))
	}},
	{"container/resources change in place", func(e *env) {
		_, id := e.start(waits)
		require.NoError(e, e.Client.UpdateContainerResources(e.ctx, id, &runtimeapi.LinuxContainerResources{CpuShares: 512}))
		require.Equal(e, int64(512), e.status(id).GetResources().GetLinux().GetCpuShares())
	}},
}
