package devnode

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flowlet/flowlet/test/devnode/private"
	"github.com/flowlet/flowlet/test/devnode/sweep"
)

// Main runs the tests of a package on a node: it is the body of a TestMain, m is its *testing.M. use is told of the node
// before the tests run. The result is the exit code.
func Main(m interface{ Run() int }, cfg Config, use func(*Node)) int {
	flag.Parse()
	if f := flag.Lookup("test.list"); f != nil && f.Value.String() != "" {
		return m.Run()
	}
	if private.Started() {
		return private.Run("", func(st sweep.State) int { return runTests(m, st, cfg, use) })
	}
	dir, err := os.MkdirTemp("", "flowlet")
	if err == nil {
		err = os.Chmod(dir, 0o711) // root of a user namespace has to get through
	}
	if err == nil {
		err = private.SweepStale(filepath.Join(os.TempDir(), "flowlet*"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := private.Run(dir, nil)
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "devnode: logs are in", dir)
	}
	return code
}

func runTests(m interface{ Run() int }, st sweep.State, cfg Config, use func(*Node)) int {
	ctx := context.Background()
	n, err := Start(ctx, st, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "devnode: start:", err)
		return 1
	}
	use(n)
	code := m.Run()
	if err := n.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "devnode: stop:", err)
		code = max(code, 1)
	}
	return code
}
