//go:build e2e

package devnode_test

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/test/devnode"
)

var node *devnode.Node

func TestMain(m *testing.M) {
	os.Exit(devnode.Main(m, devnode.Config{}, func(n *devnode.Node) { node = n }))
}

func connect(t *testing.T) (runtimeapi.RuntimeServiceClient, runtimeapi.ImageServiceClient) {
	t.Helper()
	conn, err := grpc.NewClient(node.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)
}

// A pod with one container starts from a pulled image, has an address of the node's network and a host port, and outlives
// containerd.
func TestNodeRunsAContainer(t *testing.T) {
	ctx := t.Context()
	runtime, images := connect(t)
	logs, err := node.MemDir("logs")
	require.NoError(t, err)
	port := freePort(t)
	begin := time.Now()

	_, err = images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: node.Demo}})
	require.NoError(t, err)
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "1"},
		LogDirectory: logs,
		PortMappings: []*runtimeapi.PortMapping{{ContainerPort: 8080, HostPort: port}},
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: node.CgroupRoot + "/web"},
	}
	s, err := runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sandbox})
	require.NoError(t, err)
	c, err := runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: s.PodSandboxId, SandboxConfig: sandbox, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Image: &runtimeapi.ImageSpec{Image: node.Demo},
			Args: []string{"serve"}, LogPath: "web.log", Linux: &runtimeapi.LinuxContainerConfig{},
		},
	})
	require.NoError(t, err)
	_, err = runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: c.ContainerId})
	require.NoError(t, err)
	t.Logf("pulled and started in %s", time.Since(begin))

	status, err := runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.PodSandboxId})
	require.NoError(t, err)
	ip, err := netip.ParseAddr(status.Status.Network.Ip)
	require.NoError(t, err)
	require.True(t, node.PodCIDR.Contains(ip), "%s in %s", ip, node.PodCIDR)
	answers := func(addr netip.Addr, port int32) func() bool {
		return func() bool { return get("http://"+netip.AddrPortFrom(addr, uint16(port)).String()) == "hello\n" }
	}
	require.Eventually(t, answers(ip, 8080), 10*time.Second, 20*time.Millisecond)
	gateway := node.PodCIDR.Addr().Next()
	require.Eventually(t, answers(gateway, port), 10*time.Second, 20*time.Millisecond, "host port")

	require.NoError(t, node.RestartRuntime(ctx))
	running, err := runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.ContainerId}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, running.Status.State)

	_, err = runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.PodSandboxId})
	require.NoError(t, err)
	_, err = runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.PodSandboxId})
	require.NoError(t, err)
}

// freePort is a port that nobody listened on a moment ago.
func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return int32(l.Addr().(*net.TCPAddr).Port)
}
