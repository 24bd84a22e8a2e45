package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Keyring is the credentials of a docker configuration, by what they are for;
// the most specific come first. It is a value, and never part of an error.
type Keyring []key

type key struct {
	host, path string // of the registry; the host's labels may be patterns
	auth       *runtimeapi.AuthConfig
}

// hub is what docker calls its own registry in its configuration.
const hub = "index.docker.io"

// ParseDockerConfig reads ~/.docker/config.json, the "auths" of it, which is
// also what a secret of type kubernetes.io/dockerconfigjson holds.
func ParseDockerConfig(data []byte) (Keyring, error) {
	var file struct {
		Auths map[string]entry `json:"auths"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, unreadable(err)
	}
	return keyring(file.Auths)
}

// ParseDockerCfg reads the older ~/.dockercfg, which is such "auths" alone.
func ParseDockerCfg(data []byte) (Keyring, error) {
	var auths map[string]entry
	if err := json.Unmarshal(data, &auths); err != nil {
		return nil, unreadable(err)
	}
	return keyring(auths)
}

// unreadable says where reading ended, and nothing of what was read: the
// decoder's own message may quote it.
func unreadable(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not valid JSON at byte %d", syntax.Offset)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("field %s is not of the right type", kind.Field)
	}
	return errors.New("not a docker configuration")
}

// entry is what the docker configuration has for one registry.
type entry struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"` // base64 of USER:PASSWORD; wins
}

func (e entry) config() (*runtimeapi.AuthConfig, error) {
	if e.Auth == "" {
		return &runtimeapi.AuthConfig{Username: e.Username, Password: e.Password}, nil
	}
	plain, err := base64.StdEncoding.DecodeString(e.Auth)
	if err != nil { // as some tools write it
		plain, err = base64.RawStdEncoding.DecodeString(e.Auth)
	}
	user, password, ok := strings.Cut(string(plain), ":")
	if err != nil || !ok {
		return nil, errors.New("auth must be the base64 form of USER:PASSWORD")
	}
	return &runtimeapi.AuthConfig{Username: user, Password: password}, nil
}

func keyring(auths map[string]entry) (Keyring, error) {
	ring := make(Keyring, 0, len(auths))
	for _, of := range slices.Sorted(maps.Keys(auths)) {
		auth, err := auths[of].config()
		if err != nil {
			return nil, fmt.Errorf("auths[%q]: %w", of, err)
		}
		k, err := keyOf(of)
		if err != nil {
			return nil, fmt.Errorf("auths[%q]: not the name of a registry", of)
		}
		k.auth = auth
		ring = append(ring, k)
	}
	// What is longer is more specific. Names of one place keep their order.
	slices.SortStableFunc(ring, func(a, b key) int { return strings.Compare(b.host+b.path, a.host+a.path) })
	return ring, nil
}

// keyOf reads HOST, HOST/PATH or a URL. Docker takes the roots of both versions
// of its API, which old configurations name, for the whole host.
func keyOf(of string) (key, error) {
	if !strings.HasPrefix(of, "http://") && !strings.HasPrefix(of, "https://") {
		of = "https://" + of
	}
	u, err := url.Parse(of)
	if err != nil {
		return key{}, err
	}
	p := u.Path
	if strings.HasPrefix(p, "/v1/") || strings.HasPrefix(p, "/v2/") {
		p = p[len("/v1"):]
	}
	if p == "/" {
		p = ""
	}
	return key{host: u.Host, path: p}, nil
}

// For returns the credentials that are worth a try for an image reference, in
// that order; none for an image that may be pulled by anybody.
func (k Keyring) For(ref string) []*runtimeapi.AuthConfig {
	named, err := parse(ref)
	if err != nil {
		return nil
	}
	host, repository := reference.Domain(named), "/"+reference.Path(named)
	var found []*runtimeapi.AuthConfig
	for _, key := range k {
		if key.opens(host, repository) {
			found = append(found, key.auth)
		}
	}
	if len(found) == 0 && host == "docker.io" {
		return k.hub()
	}
	return found
}

func (k Keyring) hub() (found []*runtimeapi.AuthConfig) {
	for _, key := range k {
		if key.host == hub {
			found = append(found, key.auth)
		}
	}
	return found
}

// opens compares hosts label by label, so that a pattern never matches a dot;
// ports must be the same, and paths may go on.
func (k key) opens(host, repository string) bool {
	wantHost, wantPort, _ := strings.Cut(k.host, ":")
	name, port, _ := strings.Cut(host, ":")
	want, have := strings.Split(wantHost, "."), strings.Split(name, ".")
	if wantPort != port || len(want) != len(have) || !strings.HasPrefix(repository, k.path) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
