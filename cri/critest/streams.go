package critest

import (
	"bytes"
	"context"
	"net/url"
	"strings"

	"github.com/stretchr/testify/require"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

// urlCall is a call that gives the URL of a stream.
type urlCall struct {
	name string
	call func(ctx context.Context, c *cri.Client, sandbox, container string) (string, error)
}

var urlCalls = []urlCall{
	{"Exec", func(ctx context.Context, c *cri.Client, _, container string) (string, error) {
		return c.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: container, Cmd: []string{"true"}, Stdout: true})
	}},
	{"Attach", func(ctx context.Context, c *cri.Client, _, container string) (string, error) {
		return c.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: container, Stdout: true})
	}},
	{"PortForward", func(ctx context.Context, c *cri.Client, sandbox, _ string) (string, error) {
		return c.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: sandbox})
	}},
}

func streamContract() []contract {
	var all []contract
	for _, u := range urlCalls {
		all = append(all, contract{"streams/" + u.name, u.test})
	}
	return append(all, contract{"streams/exec passes input, output and exit code", execStream})
}

func (u urlCall) test(e *env) {
	p, id := e.start(waits)
	at, err := u.call(e.ctx, e.Client, p.id, id)
	if !e.Streams {
		require.ErrorIs(e, err, cri.ErrUnsupported)
		return
	}
	require.NoError(e, err)
	parsed, err := url.Parse(at)
	require.NoError(e, err)
	require.Equal(e, "http", parsed.Scheme)
	require.NotEmpty(e, parsed.Host)
	again, err := u.call(e.ctx, e.Client, p.id, id)
	require.NoError(e, err)
	require.NotEqual(e, at, again, "each URL is for one stream")

	_, err = u.call(e.ctx, e.Client, unknownID, unknownID)
	require.True(e, cri.IsNotFound(err), "%v", err)
	require.NoError(e, e.Client.StopContainer(e.ctx, id, 0))
	require.NoError(e, e.Client.StopPodSandbox(e.ctx, p.id))
	_, err = u.call(e.ctx, e.Client, p.id, id)
	require.Error(e, err, "nothing runs")
	require.False(e, cri.IsNotFound(err), "%v", err)
}

func execStream(e *env) {
	if !e.Streams {
		e.Skip("this runtime has no streams")
	}
	_, id := e.start(answers)
	run := func(command []string, in string) (out, errOut string, err error) {
		at, err := e.Client.Exec(e.ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: command, Stdin: true, Stdout: true, Stderr: true})
		require.NoError(e, err)
		u, err := url.Parse(at)
		require.NoError(e, err)
		x, err := remotecommand.NewSPDYExecutor(&restclient.Config{}, "POST", u)
		require.NoError(e, err)
		var o, eo bytes.Buffer
		err = x.StreamWithContext(e.ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(in), Stdout: &o, Stderr: &eo})
		return o.String(), eo.String(), err
	}
	out, _, err := run(e.Programs.ExecOut, "")
	require.NoError(e, err)
	require.Equal(e, "1 out\n", out)
	out, _, err = run(e.Programs.ExecCopy, "typed\n")
	require.NoError(e, err)
	require.Equal(e, "typed\n", out)
	_, errOut, err := run(e.Programs.ExecFail, "")
	var code exec.CodeExitError
	require.ErrorAs(e, err, &code)
	require.Equal(e, 7, code.ExitStatus())
	require.Equal(e, "err\n", errOut)
}
