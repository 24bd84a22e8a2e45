package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/renameio/v2"
	"github.com/moby/sys/user"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// IDRange is a range of user and group IDs of the node.
type IDRange struct{ First, Count uint64 }

// DefaultIDsPerPod is the default of userNamespaces.idsPerPod (kubelet v1.37.2).
const DefaultIDsPerPod = 1 << 16

// allIDs is one more than the greatest ID.
const allIDs = 1 << 32

// IDRangeOf returns the IDs that user namespaces of pods are cut from: those
// that the files, of the form of /etc/subuid and /etc/subgid, give to a user,
// or else all but the first perPod, which the node itself uses.
func IDRangeOf(name, subuid, subgid string, perPod uint32) (IDRange, error) {
	uids, err := ranges(subuid, name)
	if err != nil {
		return IDRange{}, err
	}
	gids, err := ranges(subgid, name)
	if err != nil {
		return IDRange{}, err
	}
	if len(uids)+len(gids) == 0 {
		return IDRange{uint64(perPod), allIDs - uint64(perPod)}, nil
	}
	if len(uids) != 1 || len(gids) != 1 || uids[0] != gids[0] {
		return IDRange{}, fmt.Errorf("%s and %s must give user %s one range each, the same in both", subuid, subgid, name)
	}
	r := uids[0]
	n := uint64(perPod)
	if r.First < n || r.First%n != 0 || r.Count%n != 0 || r.First+r.Count > allIDs {
		return IDRange{}, fmt.Errorf("%s: the range %d:%d of user %s must begin and end at a multiple of %d (userNamespaces.idsPerPod), and not at 0",
			subuid, r.First, r.Count, name, perPod)
	}
	return r, nil
}

func ranges(path, name string) ([]IDRange, error) {
	rows, err := user.ParseSubIDFileFilter(path, func(s user.SubID) bool { return s.Name == name })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the IDs for user namespaces: %w", err)
	}
	var out []IDRange
	for _, r := range rows {
		out = append(out, IDRange{uint64(max(r.SubID, 0)), uint64(max(r.Count, 0))})
	}
	return out, nil
}

// UserNamespaces gives pods ranges of IDs that no other pod of the node has. A
// pod's range is in a file of its directory, and is free again when that
// is removed; there is no other record. Its methods may be called concurrently.
type UserNamespaces struct {
	PodsDir string // holds a directory for each pod
	PerPod  uint32 // IDs of one pod
	// Range is what the ranges are cut from. It is asked when one is needed.
	Range func() (IDRange, error)

	mu sync.Mutex
}

// mapping is a file in the format of the kubelet (v1.37.2), so that each finds
// what the other left.
type mapping struct {
	UIDs []idMap `json:"uidMappings"`
	GIDs []idMap `json:"gidMappings"`
}

type idMap struct {
	Host      uint32 `json:"hostId"`
	Container uint32 `json:"containerId"`
	Length    uint32 `json:"length"`
}

// file is where a pod's range is written; a UID that cannot name a directory
// has been refused before.
func (u *UserNamespaces) file(uid types.UID) string {
	return filepath.Join(u.PodsDir, filepath.Base(string(uid)), "userns")
}

// Find returns the pod's range; nil when it has none.
func (u *UserNamespaces) Find(uid types.UID) (*runtimeapi.UserNamespace, error) {
	m, err := u.read(uid)
	if m == nil || err != nil {
		return nil, err
	}
	return m.message(), nil
}

// Allocate returns the pod's range, and gives it one when it has none. The
// pod's directory must be there.
func (u *UserNamespaces) Allocate(uid types.UID) (*runtimeapi.UserNamespace, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if have, err := u.Find(uid); have != nil || err != nil {
		return have, err
	}
	first, err := u.free()
	if err != nil {
		return nil, err
	}
	one := []idMap{{Host: first, Length: u.PerPod}}
	m := &mapping{UIDs: one, GIDs: one}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	file := u.file(uid)
	if err := renameio.WriteFile(file, data, 0o600, renameio.WithTempDir(filepath.Dir(file))); err != nil {
		return nil, fmt.Errorf("keeping the IDs of the pod's user namespace: %w", err)
	}
	return m.message(), nil
}

func (u *UserNamespaces) read(uid types.UID) (*mapping, error) {
	file := u.file(uid)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the IDs of a pod's user namespace: %w", err)
	}
	var m mapping
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", file, err)
	}
	if len(m.UIDs) != 1 || len(m.GIDs) != 1 || m.UIDs[0] != m.GIDs[0] || m.UIDs[0].Container != 0 || m.UIDs[0].Length == 0 {
		return nil, fmt.Errorf("%s must hold one range for users and the same for groups, from ID 0 on", file)
	}
	return &m, nil
}

// free returns the first ID of a range that overlaps that of no pod.
func (u *UserNamespaces) free() (uint32, error) {
	all, err := u.Range()
	if err != nil {
		return 0, err
	}
	taken, err := u.taken()
	if err != nil {
		return 0, err
	}
	n := uint64(u.PerPod)
	for first := all.First; first+n <= all.First+all.Count; first += n {
		if !overlaps(taken, first, n) {
			return uint32(first), nil //nolint:gosec // below allIDs
		}
	}
	return 0, fmt.Errorf("all %d ranges of IDs for user namespaces are in use", all.Count/n)
}

func (u *UserNamespaces) taken() ([]idMap, error) {
	pods, err := os.ReadDir(u.PodsDir)
	if err != nil {
		return nil, fmt.Errorf("looking for the user namespaces of other pods: %w", err)
	}
	var out []idMap
	for _, p := range pods {
		if !p.IsDir() {
			continue
		}
		m, err := u.read(types.UID(p.Name()))
		if err != nil {
			return nil, err // one of its IDs could be given out twice
		}
		if m != nil {
			out = append(out, m.UIDs[0])
		}
	}
	return out, nil
}

func overlaps(taken []idMap, first, n uint64) bool {
	for _, t := range taken {
		if begin := uint64(t.Host); begin < first+n && first < begin+uint64(t.Length) {
			return true
		}
	}
	return false
}

func (m *mapping) message() *runtimeapi.UserNamespace {
	list := func(maps []idMap) []*runtimeapi.IDMapping {
		var out []*runtimeapi.IDMapping
		for _, i := range maps {
			out = append(out, &runtimeapi.IDMapping{HostId: i.Host, ContainerId: i.Container, Length: i.Length})
		}
		return out
	}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: list(m.UIDs), Gids: list(m.GIDs)}
}
