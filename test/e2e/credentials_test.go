//go:build e2e

package e2e_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/test/devnode/images"
)

const password = "not-to-be-seen-anywhere"

// lockedRegistry serves the demo image to who has the password, and returns its name.
func lockedRegistry(t *testing.T) (image string) {
	t.Helper()
	open := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, given, _ := r.BasicAuth(); user != "node" || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="locked"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	built, err := images.Build(t.Context(), node.Tools.Repo)
	require.NoError(t, err)
	image = strings.TrimPrefix(server.URL, "http://") + "/locked/demo:1"
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, built[images.Demo], remote.WithAuth(&authn.Basic{Username: "node", Password: password})))
	return image
}

// A registry that asks for a password gets the node's own, as soon as the node has it; nobody else sees it.
func TestNodeLogsInToRegistries(t *testing.T) {
	sawOn(t, node, "pulls from a registry with a password, by credentials of the node")
	image := lockedRegistry(t)
	a := startAgent(t, node, "locked.yaml", strings.ReplaceAll(podOf("locked", `containers: [{name: main, image: LOCKED, args: [sleep]}]`), "LOCKED", image))
	a.untilPod("locked", "cannot be pulled", func(p *v1.Pod) bool {
		w := status(p, "main").State.Waiting
		return w != nil && w.Reason == "ErrImagePull"
	})
	host, _, _ := strings.Cut(image, "/")
	config := `{"auths": {"` + host + `": {"username": "node", "password": "` + password + `"}}}`
	require.NoError(t, os.WriteFile(filepath.Join(a.root, "config.json"), []byte(config), 0o600))
	a.untilPod("locked", "is ready", isReady)

	for _, command := range [][]string{{"get", "pod", "locked", "-o", "json"}, {"journal", "locked"}, {"trace", "locked"}} {
		said, code := a.run(command...)
		require.Zero(t, code, said)
		require.NotContains(t, said, password)
	}
	logged, err := os.ReadFile(a.log)
	require.NoError(t, err)
	require.NotContains(t, string(logged), password)
	require.NoError(t, os.Remove(filepath.Join(a.root, "config.json")))
}
