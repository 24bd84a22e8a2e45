//go:build e2e

package e2e_test

import (
	"os"
	"testing"

	"github.com/flowlet/flowlet/test/devnode"
)

// node is the private node of all tests of this package. Tests run inside of its namespaces.
var node *devnode.Node

func TestMain(m *testing.M) {
	os.Exit(devnode.Main(m, devnode.Config{}, func(n *devnode.Node) { node = n }))
}
