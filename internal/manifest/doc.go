// Package manifest turns what a user wrote in a file into a pod that can run:
// it decodes, defaults, validates and identifies static pods.
//
// The steps are pure functions over k8s.io/api/core/v1 types and may be used
// one by one; Load does them all in the order that a pod source needs:
//
//	Decode    bytes → Manifest: the pod as written, its canonical JSON, where each field stands
//	Default   fill in what the API server would fill in
//	Validate  refuse what the API server would refuse, under the name that the user wrote
//	Identify  name, namespace, node, UID and annotations of a static pod
//
// How strict it is: a field that is not known and a key that is written twice
// do not keep a pod from running (the last value of a key counts, as for the
// kubelet), but each gives a warning with its place. Everything else that
// cannot be decoded, or is not valid, is an error. Errors and warnings are
// Problems: they name the file, the line where it is known, and the field.
//
// Nothing here holds state; all functions may be called concurrently.
package manifest
