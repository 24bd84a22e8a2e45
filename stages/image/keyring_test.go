package image_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/image"
)

func users(auths []*runtimeapi.AuthConfig) (names []string) {
	for _, a := range auths {
		names = append(names, a.GetUsername()+"/"+a.GetPassword())
	}
	return names
}

func TestKeyringForReference(t *testing.T) {
	ring, err := image.ParseDockerConfig([]byte(`{"auths": {
		"registry.io": {"username": "host", "password": "p"},
		"registry.io/team": {"auth": "dGVhbTpxOnI="},
		"https://old.io/v1/": {"username": "old", "password": "p"},
		"*.cloud.io": {"username": "any", "password": "p"},
		"local:5000": {"username": "port", "password": "p"},
		"https://index.docker.io/v1/": {"username": "hub", "password": "p"}
	}, "credsStore": "ignored"}`))
	require.NoError(t, err)
	for ref, want := range map[string][]string{
		"registry.io/team/app:1":    {"team/q:r", "host/p"},
		"registry.io/other":         {"host/p"},
		"old.io/app":                {"old/p"},
		"eu.cloud.io/app":           {"any/p"},
		"a.eu.cloud.io/app":         nil, // a label is one label
		"cloud.io/app":              nil,
		"local:5000/app":            {"port/p"},
		"local:5001/app":            nil,
		"local/app":                 {"hub/p"}, // not a host: a repository of the hub
		"nginx":                     {"hub/p"},
		"docker.io/library/nginx":   {"hub/p"},
		"registry.iox/app":          nil,
		"NOT A REFERENCE":           nil,
		"registry.io/team@sha256:1": nil,
	} {
		require.Equal(t, want, users(ring.For(ref)), ref)
	}
}

// Several names of one registry are tried in the order of the names, each time.
func TestNamesOfOneRegistryKeepTheirOrder(t *testing.T) {
	for range 50 {
		ring, err := image.ParseDockerCfg([]byte(`{
			"r.io": {"auth": "YTpw"}, "https://r.io/v2/": {"auth": "Yjpw"}, "https://r.io/v1/": {"auth": "Yzpw"}, "http://r.io": {"auth": "ZDpw"}
		}`))
		require.NoError(t, err)
		require.Equal(t, []string{"d/p", "c/p", "b/p", "a/p"}, users(ring.For("r.io/app")))
	}
}

func TestOlderFormIsTheSameWithoutAuths(t *testing.T) {
	ring, err := image.ParseDockerCfg([]byte(`{"registry.io": {"auth": "dTpw", "email": "x@y"}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"u/p"}, users(ring.For("registry.io/app")))
}

func TestBadConfigurationsShowNoSecret(t *testing.T) {
	for text, want := range map[string]string{
		`{"auths": {"r.io": {"auth": "c2VjcmV0"}}}`:              `auths["r.io"]: auth must be the base64 form of USER:PASSWORD`,
		`{"auths": {"r.io": {"auth": "secret!"}}}`:               `auths["r.io"]: auth must be the base64 form of USER:PASSWORD`,
		`{"auths": {"r.io": {"password": 1234}}}`:                "field auths.password is not of the right type",
		`{"auths": {"r.io": {"password": secret}}}`:              "not valid JSON at byte 33",
		`{"auths": {"https://u:secret@%zz": {"username": "u"}}}`: "not the name of a registry",
	} {
		_, err := image.ParseDockerConfig([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestNodeKeysAreReadAgainWhenTheyChange(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	keys := image.NewNodeKeys(root, "", home)
	auths, err := keys.For("r.io/app")
	require.NoError(t, err)
	require.Empty(t, auths)

	write := func(path, text string, age time.Duration) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	user := func() []string {
		auths, err := keys.For("r.io/app")
		require.NoError(t, err)
		return users(auths)
	}
	write(filepath.Join(root, ".dockercfg"), `{"r.io": {"auth": "YTpw"}}`, 0)
	require.Equal(t, []string{"a/p"}, user())
	write(filepath.Join(home, ".docker", "config.json"), `{"auths": {"r.io": {"auth": "Yjpw"}}}`, 0)
	require.Equal(t, []string{"b/p"}, user(), "the newer form comes first")
	write(filepath.Join(root, "config.json"), `{"auths": {"r.io": {"auth": "Yzpw"}}}`, time.Hour)
	require.Equal(t, []string{"c/p"}, user(), "the root directory comes first")
	write(filepath.Join(root, "config.json"), `{"auths": {"r.io": {"auth": "ZDpw"}}}`, 0)
	require.Equal(t, []string{"d/p"}, user())

	write(filepath.Join(root, "config.json"), `{"auths"`, time.Minute)
	auths, err = keys.For("r.io/app")
	require.ErrorContains(t, err, filepath.Join(root, "config.json"))
	require.Empty(t, auths)

	require.NoError(t, os.Truncate(filepath.Join(root, "config.json"), 1<<40)) // in memory it would be the agent's end
	_, err = keys.For("r.io/app")
	require.ErrorContains(t, err, "config.json: it is larger than 10 MiB")
}

// locked is a registry that opens with one password only.
type locked struct {
	fakeRuntime
	opens string
	tried []string
}

func (r *locked) PullImage(_ context.Context, _ *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	r.tried = append(r.tried, auth.GetPassword())
	if auth.GetPassword() == r.opens {
		return "sha256:pulled", nil
	}
	return "", status.Error(codes.Unknown, "denied")
}

type ring struct {
	passwords []string
	err       error
}

func (r ring) For(string) (auths []*runtimeapi.AuthConfig, err error) {
	for _, p := range r.passwords {
		auths = append(auths, &runtimeapi.AuthConfig{Username: "u", Password: p})
	}
	return auths, r.err
}

func TestCredentialsAreTriedUntilOneOpens(t *testing.T) {
	rt := &locked{opens: "two"}
	_, err := image.New(image.Config{Runtime: rt, Events: &recorder{}, Keys: ring{passwords: []string{"one", "two", "three"}}}).
		Pull(t.Context(), aPod(), "nginx", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, rt.tried)
}

func TestNoCredentialOpens(t *testing.T) {
	rt, ev := &locked{opens: "none"}, &recorder{}
	_, err := image.New(image.Config{Runtime: rt, Events: ev, Keys: ring{passwords: []string{"one", "two"}}}).
		Pull(t.Context(), aPod(), "nginx", nil)
	require.Equal(t, "ErrImagePull", pod.ReasonOf(err))
	require.Equal(t, []string{"one", "two"}, rt.tried, "what has credentials is not tried without them")
	for _, line := range append(ev.lines, err.Error()) {
		require.NotContains(t, line, "two")
	}
}

func TestUnreadableCredentialsAreToldWithTheFailure(t *testing.T) {
	rt := &locked{opens: "none"}
	keys := ring{err: errors.New("reading FILE: not valid JSON")}
	images := image.New(image.Config{Runtime: rt, Events: &recorder{}, Keys: keys})
	_, err := images.Pull(t.Context(), aPod(), "nginx", nil)
	require.ErrorContains(t, err, "denied; reading FILE: not valid JSON")
	rt.opens = ""
	_, err = images.Pull(t.Context(), aPod(), "nginx", nil)
	require.NoError(t, err, "an image for everybody needs none")
}
