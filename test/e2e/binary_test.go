//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// build makes the binary under test, once. FLOWLET names another one to test, for instance with the race detector in it.
var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("FLOWLET"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := node.MemDir("bin")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "flowlet")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/flowlet")
	cmd.Dir = node.Tools.Repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build flowlet: %w\n%s", err, out)
	}
	return path, nil
})

// binary is the path of the flowlet under test.
func binary(t *testing.T) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}
