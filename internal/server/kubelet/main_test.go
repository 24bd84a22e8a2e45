package kubelet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/internal/server/kubelet"
	"github.com/flowlet/flowlet/internal/server/remote"
)

func TestMain(m *testing.M) {
	// Both end some seconds after their connection broke; the second is the client's.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"),
		goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// node is the API of an agent on its local socket, with the pods that a test
// puts into the store.
type node struct {
	*testing.T
	store  *podstore.Store
	api    *kubelet.API
	logs   string
	root   string
	client *remote.Client
	wrap   func(http.Handler) http.Handler // optional
	active atomic.Int32                    // requests that are being answered
	stop   context.CancelCauseFunc
	ended  chan error
}

// crisimExit is how a test ends a container from outside.
var crisimExit = crisim.Exit{Code: 1}

var target = remote.Target{Namespace: "default", Pod: "web-n", Container: "a"}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{T: t, store: podstore.New(), logs: t.TempDir(), root: t.TempDir(), ended: make(chan error, 1)}
	n.api = &kubelet.API{
		Store: n.store,
		Pods: func() *v1.PodList {
			return &v1.PodList{Items: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web-n"}}}}
		},
		LogDir: func(*v1.Pod) string { return n.logs },
	}
	return n
}

// serve answers on the socket until the test ends or n.stop is called.
func (n *node) serve() *node {
	n.Helper()
	l, err := server.ListenLocal(n.root)
	require.NoError(n, err)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(n.Context()))
	n.stop = cancel
	h := n.api.Handler()
	if n.wrap != nil {
		h = n.wrap(h)
	}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.active.Add(1)
		defer n.active.Add(-1)
		h.ServeHTTP(w, r)
	})
	go func() { n.ended <- server.Serve(ctx, l, counted) }()
	n.Cleanup(func() {
		cancel(errors.New("the test is over"))
		require.NoError(n, <-n.ended)
	})
	n.client = remote.NewClient(filepath.Join(n.root, server.SocketName))
	return n
}

// logFile writes the log of an attempt.
func (n *node) logFile(container string, attempt int, lines ...string) string {
	n.Helper()
	path := filepath.Join(n.logs, container, fmt.Sprintf("%d.log", attempt))
	require.NoError(n, os.MkdirAll(filepath.Dir(path), 0o750))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(n, err)
	for _, l := range lines {
		_, err := f.WriteString(l + "\n")
		require.NoError(n, err)
	}
	require.NoError(n, f.Close())
	return path
}

// web is the pod with one container "a" and whatever change says.
func (n *node) web(change func(v *podstore.View, s *pod.State)) {
	n.Helper()
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u1", Namespace: "default", Name: "web-n"},
		Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "a"}, {Name: "b"}}},
	}
	s := &pod.State{
		Identity: pod.Identity{Name: "web-n", Namespace: "default", UID: "u1"},
		Spec:     &pod.Spec{Pod: p, Source: pod.SourceFile},
	}
	v := podstore.View{Key: "u1", State: s, Status: &v1.PodStatus{}}
	change(&v, s)
	n.store.Put(v)
}

// started is the pod with container "a" as its attempt, in that state.
func (n *node) started(id string, attempt uint32, state pod.ContainerState) {
	n.Helper()
	n.web(func(v *podstore.View, s *pod.State) {
		s.Containers = []pod.Container{{ID: id, Name: "a", Attempt: attempt, State: state, Detailed: true, LogPath: filepath.Join(n.logs, "a", fmt.Sprintf("%d.log", attempt))}}
		st := v1.ContainerStatus{Name: "a", ContainerID: "sim://" + id}
		if state == pod.Running {
			st.State.Running = &v1.ContainerStateRunning{}
		} else {
			st.State.Terminated = &v1.ContainerStateTerminated{ContainerID: "sim://" + id}
		}
		v.Status.ContainerStatuses = []v1.ContainerStatus{st}
	})
}

// onSim runs the pod with its container "a" on a simulated runtime.
func (n *node) onSim() *crisim.Runtime {
	n.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.Context()))
	sim := crisim.New(crisim.Config{Images: map[string]crisim.Image{"app:1": {Present: true}}, Logs: crisim.Files{}})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(n, err)
	ended := make(chan error, 2)
	go func() { ended <- sim.Run(ctx) }()
	go func() { ended <- sim.ServeStreams(ctx, lis) }()
	conn := sim.Conn()
	client := cri.New(conn)
	n.Cleanup(func() {
		require.NoError(n, conn.Close())
		cancel()
		require.NoError(n, <-ended)
		require.NoError(n, <-ended)
	})
	n.api.Streams, n.api.Commands = client, client
	require.Eventually(n, func() bool { // until ServeStreams has begun
		_, err := client.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: "none"})
		return cri.IsNotFound(err)
	}, 10*time.Second, time.Millisecond)

	config := &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Name: "web-n", Namespace: "default", Uid: "u1"},
		Annotations: map[string]string{crisim.Annotation: `{"a":{"exec":[{"command":"fails","code":4,"stdout":"out","stderr":"err"}]}}`}, LogDirectory: n.logs,
	}
	sandbox, err := client.RunPodSandbox(ctx, config, "")
	require.NoError(n, err)
	id, err := client.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "a"}, Image: &runtimeapi.ImageSpec{Image: "app:1"}, LogPath: "a/0.log",
	}, config)
	require.NoError(n, err)
	require.NoError(n, client.StartContainer(ctx, id))
	n.started(id, 0, pod.Running)
	v, _ := n.store.Get("u1")
	v.State.Sandboxes = []pod.Sandbox{{ID: sandbox, Ready: true}}
	return sim
}
