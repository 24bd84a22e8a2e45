//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
)

// podOf is a manifest: a name and a spec. IMAGE in it is the image with the demo program.
func podOf(name, spec string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  labels: {app: %s}\nspec:\n", name, name)
	for line := range strings.Lines(strings.TrimSpace(spec) + "\n") {
		b.WriteString("  " + strings.ReplaceAll(line, "IMAGE", node.Demo))
	}
	return b.String()
}

// sleeper is a manifest of a pod that runs until it is told to end, and then ends at once.
func sleeper(name string) string {
	return podOf(name, `containers: [{name: main, image: IMAGE, args: [sleep]}]`)
}
