//go:build e2e

package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/critest"
	"github.com/flowlet/flowlet/test/devnode"
	"github.com/flowlet/flowlet/test/devnode/images"
)

const contract = "contract suite, which the simulated runtime passes too"

// The contract that flowlet's runtime client relies on, on containerd as built from test/tools.
func TestContract(t *testing.T) {
	sawOn(t, node, contract)
	critest.Run(t, contractTarget(t, node))
}

// The same on the distribution's containerd, an older line; 1.6 is without events and RuntimeConfig.
func TestContractOnOldContainerd(t *testing.T) {
	n := startOld(t)
	sawOn(t, n, contract)
	critest.Run(t, contractTarget(t, n))
}

// startOld starts the distribution's containerd beside the node's, for the length of a test.
func startOld(t *testing.T) *devnode.Node {
	t.Helper()
	return startBeside(t, devnode.Config{Debian: true})
}

// startBeside starts another runtime beside the node's, for the length of a test.
func startBeside(t *testing.T, cfg devnode.Config) *devnode.Node {
	t.Helper()
	n, err := node.Beside(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop(context.WithoutCancel(t.Context()))) })
	return n
}

func contractTarget(t *testing.T, n *devnode.Node) critest.Target {
	t.Helper()
	client, err := cri.Dial(n.Endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	version, err := client.Version(t.Context())
	require.NoError(t, err)
	t.Logf("%s %s", version.RuntimeName, version.RuntimeVersion)
	modern := !strings.HasPrefix(version.RuntimeVersion, "1.6.")
	logs, err := n.MemDir("critest")
	require.NoError(t, err)
	return critest.Target{
		Events: modern, RuntimeConfig: modern, Streams: true,
		Image: n.Demo, Programs: programs(), Pullable: n.Demo, Missing: images.Host + "/missing:1",
		CgroupParent: n.CgroupRoot + "/critest", LogRoot: logs,
		Open: func(t *testing.T, body func(*testing.T, critest.Runtime)) {
			body(t, critest.Runtime{Client: client, Restart: func() { require.NoError(t, n.RestartRuntime(t.Context())) }})
		},
	}
}

// programs are the suite's, in the image for pods.
func programs() critest.Programs {
	return critest.Programs{
		Wait:     []string{"/bin/sleep"},
		Stubborn: []string{"/bin/sleep", "-ignore-term"},
		Exit0:    []string{"/bin/exit", "0"},
		Exit3:    []string{"/bin/exit", "3"},
		Say:      []string{"/bin/log", "-every", "1h", "hello"},
		ExecOut:  []string{"/bin/log", "-n", "1", "out"},
		ExecFail: []string{"/bin/crash", "-after", "0s", "-code", "7", "err"},
		ExecSlow: []string{"/bin/sleep", "60"},
		ExecCopy: []string{"/bin/cat"},
	}
}
