package image

import (
	"fmt"

	"github.com/distribution/reference"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Normalize returns ref as the runtime is asked for it: as it is written, with
// ":latest" where it has neither a tag nor a digest. A reference that does not
// parse gives a terminal error with the reason InvalidImageName.
func Normalize(ref string) (string, error) {
	named, err := parse(ref)
	if err != nil {
		return "", err
	}
	if reference.IsNameOnly(named) {
		return ref + ":latest", nil
	}
	return ref, nil
}

// Registry returns the host (with port) of the registry that ref is pulled
// from: docker.io where ref names none, and "invalid" where ref does not parse.
func Registry(ref string) string {
	named, err := parse(ref)
	if err != nil {
		return "invalid"
	}
	return reference.Domain(named)
}

func parse(ref string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil, dag.Terminal(pod.WithReason("InvalidImageName",
			fmt.Errorf("couldn't parse image name %q: %w", ref, err)))
	}
	return named, nil
}
