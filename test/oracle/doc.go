// Package oracle holds tests only: they ask Kubernetes itself, linked in as a
// library, whether flowlet's own treatment of static pods is right.
//
// Defaults are compared byte for byte over random pods, and configurations of a
// kubelet in defaults, verdict and the fields that are named. Validation is compared
// over every mutation of the pods in testdata, in verdict and in the fields
// that are named; where flowlet differs on purpose, the test has the reason.
// Run it with go test ./... in this directory.
package oracle
