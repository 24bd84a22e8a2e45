// Package sweep knows what a private node makes on the machine outside of its namespaces, and takes it away again: a cgroup,
// a bridge, firewall tables, and one sysctl. All of it is written down in a state file before it is made.
package sweep

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// State is what one private node makes, and how the machine was before.
type State struct {
	ID        string       `json:"id"`     // six hex digits, part of all names
	Dir       string       `json:"dir"`    // the work directory, absolute
	Bridge    string       `json:"bridge"` // made by the CNI plugin with the first pod
	PodCIDR   netip.Prefix `json:"podCIDR"`
	Cgroup    string       `json:"cgroup"`    // path in every hierarchy
	IPForward string       `json:"ipForward"` // net.ipv4.ip_forward before: the bridge plugin sets it
	Subtree   string       `json:"subtree"`   // controllers that the cgroup2 root gave its children before
	Tables    []string     `json:"tables"`    // firewall tables of hostTables that were there before
}

// StateFile is the name of the state file in the work directory.
const StateFile = "state.json"

const ipForwardFile = "/proc/sys/net/ipv4/ip_forward"

// New chooses names and addresses for a node in dir and writes them down.
func New(dir string) (State, error) {
	var id [3]byte
	_, _ = rand.Read(id[:])
	st := State{ID: hex.EncodeToString(id[:]), Dir: dir}
	st.Bridge = "flowlet" + st.ID // 13 characters, an interface name has at most 15
	st.Cgroup = "/flowlet-" + st.ID
	st.IPForward = readTrimmed(ipForwardFile)
	st.Subtree = subtreeControl()
	st.Tables = presentTables()
	var err error
	if st.PodCIDR, err = freeSubnet(id[0]); err != nil {
		return State{}, err
	}
	return st, st.Save()
}

// Save writes the state file, and the work directory when somebody removed it.
func (st State) Save() error {
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(st.Dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(st.Dir, StateFile), append(b, '\n'), 0o644)
}

// Load reads the state of the node in dir. The error is fs.ErrNotExist when none was made or all was taken away.
func Load(dir string) (State, error) {
	path := filepath.Join(dir, StateFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return State{}, err
	}
	var st State
	if err := json.Unmarshal(b, &st); err != nil {
		return State{}, fmt.Errorf("%s is damaged (%w): if no node of this directory is left, remove it", path, err)
	}
	if !strings.HasPrefix(st.Cgroup, "/flowlet-") || st.ID == "" {
		return State{}, fmt.Errorf("%s names no node: if none of this directory is left, remove it", path)
	}
	return st, nil
}

// Sweep takes away all that the node made, ending processes in its cgroup, and then the state file. It waits for what goes
// away by itself when processes end, up to the limit. It may be repeated.
func Sweep(st State, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	err := errors.Join(
		removeCgroup(st, deadline),
		removeBridge(st.Bridge, deadline),
		removeTables(st.Tables),
		restoreIPForward(st),
	)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(st.Dir, StateFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// restoreIPForward puts the sysctl back, unless another node needs it. When nodes overlap in time, the last one saw it set by
// the first, and leaves it.
func restoreIPForward(st State) error {
	others, _ := filepath.Glob("/sys/class/net/flowlet*")
	if st.IPForward != "0" || readTrimmed(ipForwardFile) == "0" || len(others) > 0 {
		return nil
	}
	return os.WriteFile(ipForwardFile, []byte("0\n"), 0o644)
}

func readTrimmed(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}
