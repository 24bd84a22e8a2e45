package crisim_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

func TestMain(m *testing.M) {
	// Ends a second after its connection broke.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

// node is a simulated runtime with a client, in virtual time.
type node struct {
	*testing.T
	ctx    context.Context
	sim    *crisim.Runtime
	client *cri.Client
}

// simulate runs body in virtual time against a runtime of its own.
func simulate(t *testing.T, cfg crisim.Config, body func(n node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		sim := crisim.New(cfg)
		ended := make(chan error, 1)
		go func() { ended <- sim.Run(ctx) }()
		conn := sim.Conn()
		defer func() {
			require.NoError(t, conn.Close())
			cancel()
			require.NoError(t, <-ended)
		}()
		body(node{T: t, ctx: ctx, sim: sim, client: cri.New(conn)})
	})
}

// pod is a sandbox config; the UID is "uid-" and the name.
func pod(name, script string) *runtimeapi.PodSandboxConfig {
	annotations := map[string]string{}
	if script != "" {
		annotations[crisim.Annotation] = script
	}
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Labels:       map[string]string{"io.kubernetes.pod.uid": "uid-" + name},
		Annotations:  annotations,
		LogDirectory: "/var/log/pods/" + name,
	}
}

func (n node) run(config *runtimeapi.PodSandboxConfig) string {
	n.Helper()
	id, err := n.client.RunPodSandbox(n.ctx, config, "")
	require.NoError(n, err)
	return id
}

func (n node) create(sandbox, name string, attempt uint32, config *runtimeapi.PodSandboxConfig) string {
	n.Helper()
	image := &runtimeapi.ImageSpec{Image: "app:1"}
	_, err := n.client.PullImage(n.ctx, image, nil, config)
	require.NoError(n, err)
	id, err := n.client.CreateContainer(n.ctx, sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
		Image:    image,
		Labels:   config.GetLabels(),
		LogPath:  name + ".log",
	}, config)
	require.NoError(n, err)
	return id
}

// start makes a pod with one started container "web" and returns both IDs.
func (n node) start(config *runtimeapi.PodSandboxConfig) (sandbox, container string) {
	n.Helper()
	sandbox = n.run(config)
	container = n.create(sandbox, "web", 0, config)
	require.NoError(n, n.client.StartContainer(n.ctx, container))
	return sandbox, container
}

func (n node) status(container string) *runtimeapi.ContainerStatus {
	n.Helper()
	s, err := n.client.ContainerStatus(n.ctx, container)
	require.NoError(n, err)
	return s
}
