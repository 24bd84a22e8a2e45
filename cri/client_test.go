package cri_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

var config = &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u"}}

// calls is one call of each unary method that takes no stream.
func calls(ctx context.Context, c *cri.Client) map[string]func() error {
	second := func(_ any, err error) error { return err }
	const id = "0123456789abcdef"
	image := &runtimeapi.ImageSpec{Image: "app:1"}
	byID := &runtimeapi.PodSandboxFilter{Id: id}
	return map[string]func() error{
		"RunPodSandbox":    func() error { return second(c.RunPodSandbox(ctx, config, "")) },
		"StopPodSandbox":   func() error { return c.StopPodSandbox(ctx, id) },
		"RemovePodSandbox": func() error { return c.RemovePodSandbox(ctx, id) },
		"PodSandboxStatus": func() error { return second(c.PodSandboxStatus(ctx, id)) },
		"ListPodSandbox":   func() error { return second(c.ListPodSandbox(ctx, byID)) },
		"UpdatePodSandboxResources": func() error {
			return c.UpdatePodSandboxResources(ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: id})
		},
		"PortForward": func() error {
			return second(c.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: id}))
		},
		"CreateContainer": func() error {
			return second(c.CreateContainer(ctx, id, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}}, config))
		},
		"StartContainer":  func() error { return c.StartContainer(ctx, id) },
		"StopContainer":   func() error { return c.StopContainer(ctx, id, 30*time.Second) },
		"RemoveContainer": func() error { return c.RemoveContainer(ctx, id) },
		"ContainerStatus": func() error { return second(c.ContainerStatus(ctx, id)) },
		"ListContainers":  func() error { return second(c.ListContainers(ctx, &runtimeapi.ContainerFilter{PodSandboxId: id})) },
		"UpdateContainerResources": func() error {
			return c.UpdateContainerResources(ctx, id, &runtimeapi.LinuxContainerResources{})
		},
		"ReopenContainerLog":  func() error { return c.ReopenContainerLog(ctx, id) },
		"ExecSync":            func() error { return second(c.ExecSync(ctx, id, []string{"true"}, 10*time.Second)) },
		"Exec":                func() error { return second(c.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: id})) },
		"Attach":              func() error { return second(c.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: id})) },
		"CheckpointContainer": func() error { return c.CheckpointContainer(ctx, id, "/tmp/c.tar", 10*time.Second) },
		"ContainerStats":      func() error { return second(c.ContainerStats(ctx, id)) },
		"ListContainerStats":  func() error { return second(c.ListContainerStats(ctx, nil)) },
		"ListPodSandboxStats": func() error { return second(c.ListPodSandboxStats(ctx, nil)) },
		"PullImage":           func() error { return second(c.PullImage(ctx, image, nil, config)) },
		"ImageStatus":         func() error { return second(c.ImageStatus(ctx, image)) },
		"RemoveImage":         func() error { return c.RemoveImage(ctx, image) },
		"ImageFsInfo":         func() error { return second(c.ImageFsInfo(ctx)) },
		"Version":             func() error { return second(c.Version(ctx)) },
		"Status":              func() error { return second(c.Status(ctx)) },
		"RuntimeConfig":       func() error { return second(c.RuntimeConfig(ctx)) },
		"UpdateRuntimeConfig": func() error { return c.UpdateRuntimeConfig(ctx, &runtimeapi.RuntimeConfig{}) },
	}
}

func TestDeadlines(t *testing.T) {
	special := map[string]time.Duration{
		"RunPodSandbox": 4 * time.Minute, "StopContainer": 150 * time.Second, "ExecSync": 130 * time.Second,
		"CheckpointContainer": 130 * time.Second, "PullImage": 0,
	}
	synctest.Test(t, func(t *testing.T) {
		var method string
		var left time.Duration
		conn := fake{answer: func(ctx context.Context, full string, _ proto.Message) error {
			method, left = path.Base(full), 0
			if deadline, ok := ctx.Deadline(); ok {
				left = time.Until(deadline)
			}
			return nil
		}}
		client := cri.New(conn)
		for name, call := range calls(t.Context(), client) {
			want, ok := special[name]
			if !ok {
				want = 2 * time.Minute
			}
			require.NoError(t, call())
			require.Equal(t, name, method)
			require.Equal(t, want, left, name)
		}
		shorter, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for name, call := range calls(shorter, client) {
			require.NoError(t, call())
			require.Equal(t, time.Second, left, name)
		}
		short := cri.New(conn, cri.WithTimeouts(cri.Timeouts{Call: time.Minute}))
		require.NoError(t, calls(t.Context(), short)["ImageStatus"]())
		require.Equal(t, time.Minute, left)
		require.NoError(t, calls(t.Context(), short)["RunPodSandbox"]())
		require.Equal(t, 4*time.Minute, left, "what is not set keeps its default")
	})
}

func TestExecSyncWithoutTimeoutHasNoDeadline(t *testing.T) {
	client := cri.New(fake{answer: func(ctx context.Context, _ string, req proto.Message) error {
		_, ok := ctx.Deadline()
		require.False(t, ok)
		require.Zero(t, req.(*runtimeapi.ExecSyncRequest).GetTimeout())
		return nil
	}})
	_, err := client.ExecSync(t.Context(), "id", nil, 0)
	require.NoError(t, err)
}

func TestGraceInWholeSecondsRoundedUp(t *testing.T) {
	for grace, want := range map[time.Duration]int64{
		-time.Second: 0, 0: 0, time.Millisecond: 1, time.Second: 1, 1500 * time.Millisecond: 2,
	} {
		client := cri.New(fake{answer: func(_ context.Context, _ string, req proto.Message) error {
			require.Equal(t, want, req.(*runtimeapi.StopContainerRequest).GetTimeout(), grace)
			return nil
		}})
		require.NoError(t, client.StopContainer(t.Context(), "id", grace))
	}
}

func TestErrorNamesCallAndObjectOnce(t *testing.T) {
	client := cri.New(fake{answer: func(context.Context, string, proto.Message) error {
		return status.Error(codes.Internal, "disk on fire")
	}})
	special := map[string]string{
		"RunPodSandbox": "default/web", "CreateContainer": "default/web/app", "PullImage": "app:1", "ImageStatus": "app:1", "RemoveImage": "app:1",
		"ListPodSandbox": "", "ListContainers": "", "ListContainerStats": "", "ListPodSandboxStats": "", "ImageFsInfo": "",
		"Version": "", "Status": "", "RuntimeConfig": "", "UpdateRuntimeConfig": "",
	}
	for name, call := range calls(t.Context(), client) {
		object, ok := special[name]
		if !ok {
			object = "0123456789abc" // shortened
		}
		want := name + ": disk on fire"
		if object != "" {
			want = name + " " + object + ": disk on fire"
		}
		err := call()
		require.EqualError(t, err, want)
		require.Equal(t, codes.Internal, status.Code(err))
		var e *cri.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, name, e.Method)
	}
}

func TestNotFoundIsSuccessWhereSomethingIsToGo(t *testing.T) {
	client := cri.New(fake{answer: func(context.Context, string, proto.Message) error {
		return status.Error(codes.NotFound, "no such thing")
	}})
	goes := map[string]bool{"StopPodSandbox": true, "RemovePodSandbox": true, "StopContainer": true, "RemoveContainer": true, "RemoveImage": true}
	for name, call := range calls(t.Context(), client) {
		err := call()
		if goes[name] {
			require.NoError(t, err, name)
			continue
		}
		require.True(t, cri.IsNotFound(err), "%s: %v", name, err)
	}
}

type recorder struct {
	began, ended []string
	errs         []error
}

type contextKey struct{}

func (r *recorder) Call(ctx context.Context, method string) (context.Context, func(error)) {
	r.began = append(r.began, method)
	return context.WithValue(ctx, contextKey{}, method), func(err error) {
		r.ended = append(r.ended, method)
		r.errs = append(r.errs, err)
	}
}

func TestObserverSeesEveryCallOnce(t *testing.T) {
	r := &recorder{}
	boom := errors.New("boom")
	client := cri.New(fake{answer: func(ctx context.Context, full string, _ proto.Message) error {
		require.Equal(t, path.Base(full), ctx.Value(contextKey{}), "the call is made with the observer's context")
		if path.Base(full) == "StopContainer" {
			return status.Error(codes.NotFound, "gone")
		}
		return boom
	}}, cri.WithObserver(r))
	all := calls(t.Context(), client)
	for _, call := range all {
		_ = call()
	}
	require.Len(t, r.began, len(all))
	require.Equal(t, r.began, r.ended)
	for i, method := range r.ended {
		if method == "StopContainer" {
			require.NoError(t, r.errs[i], "the caller's view")
			continue
		}
		require.ErrorIs(t, r.errs[i], boom)
	}
}

func TestObserverSeesStreams(t *testing.T) {
	simulate(t, crisim.Config{}, func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		r := &recorder{}
		client := cri.New(conn, cri.WithObserver(r))
		_, err := client.ListContainers(t.Context(), nil)
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { sim.CloseEventStreams(nil) })
		require.NoError(t, client.GetContainerEvents(t.Context(), func(*runtimeapi.ContainerEventResponse) {}))
		require.Equal(t, []string{"StreamContainers", "GetContainerEvents"}, r.ended)
	})
}
