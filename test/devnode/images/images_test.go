package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode/images"
	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

func TestImagesCanBePulled(t *testing.T) {
	repo, err := toolbox.Repo()
	require.NoError(t, err)
	built, err := images.Build(t.Context(), repo)
	require.NoError(t, err)
	registry, err := images.Serve()
	require.NoError(t, err)
	t.Cleanup(registry.Close)
	for name, img := range built {
		require.NoError(t, registry.Push(t.Context(), name, img))
	}
	require.ErrorContains(t, registry.Push(t.Context(), "example.com/demo:1", built[images.Demo]), "localhost:5000")

	ref, err := name.ParseReference(registry.Addr+"/demo:1", name.Insecure)
	require.NoError(t, err)
	pulled, err := remote.Image(ref, remote.WithContext(t.Context()))
	require.NoError(t, err)
	content := mutate.Extract(pulled)
	t.Cleanup(func() { _ = content.Close() })
	names := map[string]bool{}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names[h.Name] = true
	}
	require.True(t, names["bin/demo"] && names["bin/pause"] && names["etc/passwd"], "%v", names)
}
