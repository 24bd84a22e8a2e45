// Package e2e has the end-to-end tests: flowlet and its parts on a real containerd, as root. They have the build tag e2e
// and share one private node.
package e2e
