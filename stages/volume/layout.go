package volume

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// layout names the paths below the root directory and the log root.
type layout struct{ root, logs string }

// component refuses what is not one element of a path: a name from a manifest
// may not lead out of the pod's directory.
func component(what, name string) (string, error) {
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("%s %q cannot be the name of a file", what, name)
	}
	return name, nil
}

func (l layout) pods() string { return filepath.Join(l.root, "pods") }

func (l layout) pod(uid types.UID) (string, error) {
	name, err := component("pod UID", string(uid))
	return filepath.Join(l.pods(), name), err
}

// logDir is the directory of a pod's logs: <namespace>_<name>_<uid>.
func (l layout) logDir(namespace, name string, uid types.UID) (string, error) {
	dir, err := component("pod", namespace+"_"+name+"_"+string(uid))
	return filepath.Join(l.logs, dir), err
}

// volume is where the plugin's volume of that name is.
func (l layout) volume(uid types.UID, plugin, name string) (string, error) {
	return l.below(uid, "volumes", plugin, name)
}

// meta is where the plugin keeps its marks about a volume.
func (l layout) meta(uid types.UID, plugin, name string) (string, error) {
	return l.below(uid, "plugins", plugin, name)
}

func (l layout) below(uid types.UID, kind, plugin, name string) (string, error) {
	dir, err := l.pod(uid)
	if err != nil {
		return "", err
	}
	if name, err = component("volume", name); err != nil {
		return "", err
	}
	return filepath.Join(dir, kind, escape(plugin), name), nil
}

// escape writes a plugin's name as a directory.
func escape(plugin string) string { return strings.ReplaceAll(plugin, "/", "~") }
