//go:build e2e

package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode"
	"github.com/flowlet/flowlet/test/e2e/verified"
)

// node is the private node of all tests of this package. Tests run inside of its namespaces. ledger is what they have seen.
var (
	node   *devnode.Node
	ledger verified.Ledger
)

func TestMain(m *testing.M) {
	os.Exit(devnode.Main(run{m}, devnode.Config{}, func(n *devnode.Node) { node = n }))
}

// run is a run of the tests. One of all of them is held against docs/verified.md, or writes it when VERIFIED=write; one of
// some tests writes what these have seen.
type run struct{ *testing.M }

func (r run) Run() int {
	code := r.M.Run()
	if code != 0 || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	if err := settle(filepath.Join(node.Tools.Repo, "docs", "verified.md"), os.Getenv("VERIFIED") == "write"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// settle compares the page with what was seen, or writes it.
func settle(path string, write bool) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	some := flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != ""
	if write {
		seen := ledger.All()
		if some {
			if seen, err = verified.Join(string(b), seen); err != nil {
				return err
			}
		}
		page, err := verified.Write(string(b), seen)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(page), 0o644)
	}
	if some {
		return nil
	}
	unseen, err := verified.Unseen(string(b), ledger.All())
	if err != nil || len(unseen) == 0 {
		return err
	}
	var lines []string
	for _, u := range unseen {
		lines = append(lines, fmt.Sprintf("  %s (%s)", u.Feature, u.Test))
	}
	return fmt.Errorf("docs/verified.md claims what this run has not seen; make verified writes what is true:\n%s", strings.Join(lines, "\n"))
}

// saw notes what the test has seen on the agent's runtime, if the test passes.
func (a *agent) saw(features ...string) {
	a.t.Helper()
	sawOn(a.t, a.node, features...)
}

func sawOn(t *testing.T, n *devnode.Node, features ...string) {
	t.Helper()
	runtime, err := n.Runtime(t.Context())
	require.NoError(t, err)
	test, _, _ := strings.Cut(t.Name(), "/")
	t.Cleanup(func() {
		for _, f := range features {
			if !t.Failed() && !t.Skipped() {
				ledger.Add(verified.Seen{Feature: f, Runtime: runtime, Test: test})
			}
		}
	})
}
