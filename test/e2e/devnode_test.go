//go:build e2e

package e2e_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode"
)

// oldNode is the distribution's containerd beside the node's, for the length of a test.
func oldNode(t *testing.T) *devnode.Node {
	t.Helper()
	old, err := node.Beside(t.Context(), devnode.Config{Debian: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, old.Stop(context.WithoutCancel(t.Context()))) })
	return old
}

func TestOldContainerdStarts(t *testing.T) {
	old := oldNode(t)
	cmd := old.Command(t.Context(), "crictl", "version")
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	t.Logf("%s", out)
}
