package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Credentials says what to log in to a registry with.
type Credentials interface {
	// For returns what is to be tried for an image reference, in that order;
	// none: pull as anybody. With an error what could be read is returned too.
	For(ref string) ([]*runtimeapi.AuthConfig, error)
}

// NodeKeys are the credentials of the node's own docker configuration. The
// file is looked for before each pull and read anew when it has changed. Its
// methods may be called concurrently.
type NodeKeys struct {
	files []nodeFile

	mu   sync.Mutex
	read nodeRead
}

type nodeFile struct {
	path  string
	parse func([]byte) (Keyring, error)
}

// nodeRead is the file that was read last.
type nodeRead struct {
	path    string
	changed time.Time
	size    int64
	ring    Keyring
	err     error
}

// NewNodeKeys returns the credentials of the first file there is, in the
// kubelet's order: config.json in the root directory, the working directory,
// $HOME/.docker and /.docker, then .dockercfg in the first two, $HOME and /.
// An empty home is left out.
func NewNodeKeys(root, cwd, home string) *NodeKeys {
	k := &NodeKeys{}
	add := func(parse func([]byte) (Keyring, error), name string, dirs ...string) {
		for _, dir := range dirs {
			if dir != "" {
				k.files = append(k.files, nodeFile{filepath.Join(dir, name), parse})
			}
		}
	}
	dotDocker := home
	if home != "" {
		dotDocker = filepath.Join(home, ".docker")
	}
	add(ParseDockerConfig, "config.json", root, cwd, dotDocker, "/.docker")
	add(ParseDockerCfg, ".dockercfg", root, cwd, home, "/")
	return k
}

// For implements [Credentials].
func (k *NodeKeys) For(ref string) ([]*runtimeapi.AuthConfig, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.files {
		info, err := os.Stat(f.path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		k.look(f, info)
		return k.read.ring.For(ref), k.read.err
	}
	return nil, nil
}

func (k *NodeKeys) look(f nodeFile, info fs.FileInfo) {
	if k.read.path == f.path && k.read.changed.Equal(info.ModTime()) && k.read.size == info.Size() {
		return
	}
	k.read = nodeRead{path: f.path, changed: info.ModTime(), size: info.Size()}
	data, err := readSmall(f.path)
	if err == nil {
		k.read.ring, err = f.parse(data)
	}
	if err != nil {
		k.read.err = fmt.Errorf("reading the node's registry credentials in %s: %w", f.path, err)
	}
}

// mostKeys is how large a docker configuration may be: the names of these
// files are no rarity, and one is looked for in the working directory.
const mostKeys = 10 << 20

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, mostKeys+1))
	if err == nil && len(data) > mostKeys {
		return nil, errors.New("it is larger than 10 MiB")
	}
	return data, err
}
