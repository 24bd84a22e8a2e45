package image_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/image"
)

func TestNormalizeAndRegistry(t *testing.T) {
	const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for ref, want := range map[string]struct{ name, registry string }{
		"busybox":                       {"busybox:latest", "docker.io"},
		"busybox:1.36":                  {"busybox:1.36", "docker.io"},
		"busybox" + digest:              {"busybox" + digest, "docker.io"},
		"library/busybox":               {"library/busybox:latest", "docker.io"},
		"localhost:5000/a/b":            {"localhost:5000/a/b:latest", "localhost:5000"},
		"localhost/pause:1":             {"localhost/pause:1", "localhost"},
		"registry.k8s.io/pause:3.10":    {"registry.k8s.io/pause:3.10", "registry.k8s.io"},
		"quay.io/x/y:v1" + digest:       {"quay.io/x/y:v1" + digest, "quay.io"},
		"index.docker.io/library/nginx": {"index.docker.io/library/nginx:latest", "docker.io"},
	} {
		t.Run(ref, func(t *testing.T) {
			name, err := image.Normalize(ref)
			require.NoError(t, err)
			require.Equal(t, want.name, name)
			require.Equal(t, want.registry, image.Registry(ref))
		})
	}
}

func TestNormalizeRefusesForGood(t *testing.T) {
	for _, ref := range []string{"", "Busybox", "a b", "busybox:", "x@sha256:12"} {
		t.Run(ref, func(t *testing.T) {
			_, err := image.Normalize(ref)
			require.Error(t, err)
			require.Equal(t, "InvalidImageName", pod.ReasonOf(err))
			require.True(t, terminal(err))
			require.Equal(t, "invalid", image.Registry(ref))
		})
	}
}
