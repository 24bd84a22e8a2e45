package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
)

// Volumes sets up and tears down the volumes of pods: in this release emptyDir,
// hostPath, nfs, image, and what needs no API server of downwardAPI and projected.
type Volumes struct {
	Config
	layout
	step func(name string) error // a test stops between two steps of projected files
}

// New returns Volumes.
func New(c Config) *Volumes {
	return &Volumes{Config: c, layout: layout{root: c.RootDir, logs: c.LogRoot}}
}

// Found is a volume that is on the disk.
type Found struct {
	Plugin string // its directory, such as kubernetes.io~empty-dir
	Name   string
	Path   string
}

// Ensure makes the volume ready for the containers of p. An existing emptyDir
// keeps its content; files of a downward API are written if they differ. For an
// image there is nothing to do here: the runtime mounts it.
func (s *Volumes) Ensure(_ context.Context, p *corev1.Pod, v *corev1.Volume) error {
	var err error
	switch {
	case v.EmptyDir != nil:
		err = s.ensureEmptyDir(p, v)
	case v.HostPath != nil:
		err = ensureHostPath(v.HostPath)
	case v.DownwardAPI != nil || v.Projected != nil:
		err = s.ensureFiles(p, v)
	case v.NFS != nil:
		err = s.ensureNFS(p, v)
	case v.Image != nil:
	default:
		err = unsupported(v)
	}
	if err != nil {
		return fmt.Errorf("volume %s of pod %s/%s: %w", v.Name, p.Namespace, p.Name, err)
	}
	return nil
}

// Supported reports whether Ensure knows the type of the volume.
func Supported(v *corev1.Volume) bool {
	return v.EmptyDir != nil || v.HostPath != nil || v.DownwardAPI != nil || v.Projected != nil || v.NFS != nil || v.Image != nil
}

func unsupported(v *corev1.Volume) error {
	return fmt.Errorf("a volume of type %s is not supported: mount it on the node and use hostPath, or use a CSI driver", typeOf(v))
}

// typeOf names the type as it is written in a manifest.
func typeOf(v *corev1.Volume) string {
	source := reflect.ValueOf(v.VolumeSource)
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "none"
}

var errNotSetUp = errors.New("it is not set up")

// VolumePath returns the directory or file on the host that the volume of that
// name in p's spec is at. It fails while the volume is not set up, and for an
// image, which is nowhere on the host.
func (s *Volumes) VolumePath(p *corev1.Pod, name string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("volume %s of pod %s/%s: %w", name, p.Namespace, p.Name, err)
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		switch {
		case v.Name != name:
		case v.HostPath != nil:
			return v.HostPath.Path, nil
		case v.EmptyDir != nil:
			dir, err := s.volume(p.UID, emptyDirPlugin, name)
			if err != nil {
				return fail(err)
			}
			if _, err := os.Stat(dir); err != nil {
				return fail(fmt.Errorf("it is not set up: %w", err))
			}
			return dir, nil
		case v.DownwardAPI != nil || v.Projected != nil:
			dir, err := s.volume(p.UID, filesPlugin(v), name)
			if err != nil {
				return fail(err)
			}
			if !exists(filepath.Join(dir, dataLink)) {
				return fail(errNotSetUp)
			}
			return dir, nil
		case v.NFS != nil:
			dir, err := s.nfsPath(p, name)
			if err != nil {
				return fail(err)
			}
			return dir, nil
		default:
			return fail(unsupported(v))
		}
	}
	return fail(errors.New("the pod's spec has no such volume"))
}

// Unmount undoes all volumes of the pod that are found on the node, whatever
// its spec says, each after the mounts of its parts. One that cannot be undone
// does not keep the others.
func (s *Volumes) Unmount(ctx context.Context, state *pod.State) error {
	if err := s.notCovered(state.UID()); err != nil {
		return fmt.Errorf("volumes of pod %s: %w", state.FullName(), err)
	}
	errs, stuck := s.undoSubPaths(ctx, state)
	left, err := s.Found(state.UID())
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("volumes of pod %s: %w", state.FullName(), err))...)
	}
	for _, f := range left {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if stuck[f.Name] {
			continue // its parts are in use
		}
		if err := s.undo(state.UID(), f); err != nil {
			errs = append(errs, fmt.Errorf("volume %s of pod %s: %w", f.Name, state.FullName(), err))
		}
	}
	return errors.Join(errs...)
}

// undo knows the types that hold nothing but a directory, in memory or not, and
// mounts of servers, of which nothing but the mount point is removed.
func (s *Volumes) undo(uid types.UID, f Found) error {
	switch f.Plugin {
	case escape(nfsPlugin):
	case escape(emptyDirPlugin), escape(downwardPlugin), escape(projectedPlugin), "kubernetes.io~configmap", "kubernetes.io~secret":
	default:
		return fmt.Errorf("%s is of plugin %s, which this release cannot tear down; unmount and remove it by hand", f.Path, f.Plugin)
	}
	mounted, err := mountsBelow(f.Path, s.Mounter)
	if err != nil {
		return err
	}
	for _, target := range mounted {
		if err := s.Mounter.Unmount(target); err != nil {
			return err
		}
	}
	if f.Plugin == escape(nfsPlugin) {
		return s.dropMountPoint(f.Path)
	}
	meta, err := s.meta(uid, f.Plugin, f.Name)
	if err != nil {
		return err
	}
	// The mark goes first: without it a half-removed directory is set up anew.
	if err := removeTree(meta, s.Mounter); err != nil {
		return err
	}
	return removeTree(f.Path, s.Mounter)
}

// notCovered fails when something is mounted over the pod's directory, or over
// one that holds its volumes: what is there then may be anybody's.
func (s *Volumes) notCovered(uid types.UID) error {
	own, err := s.pod(uid)
	if err != nil {
		return err
	}
	mounts, err := mountsBelow(own, s.Mounter)
	if err != nil {
		return err
	}
	depth := map[string]int{"volumes": 3, "plugins": 3, "volume-subpaths": 4} // of what may be a mount
	for _, m := range mounts {
		rel, err := filepath.Rel(realPath(own), m)
		if err != nil {
			return err
		}
		parts := strings.Split(rel, "/")
		if rel == "." || len(parts) < depth[parts[0]] {
			return fmt.Errorf("nothing is undone: something that is no volume is mounted at %s; unmount it by hand", m)
		}
	}
	return nil
}

// Found lists the volumes of a UID that are on the disk, sorted by plugin and
// name.
func (s *Volumes) Found(uid types.UID) ([]Found, error) { return found(s.layout, uid) }

func found(l layout, uid types.UID) ([]Found, error) {
	dir, err := l.pod(uid)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "volumes")
	plugins, err := subdirs(root)
	if err != nil {
		return nil, err
	}
	var out []Found
	for _, plugin := range plugins {
		names, err := subdirs(filepath.Join(root, plugin))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, Found{Plugin: plugin, Name: name, Path: filepath.Join(root, plugin, name)})
		}
	}
	return out, nil
}

func subdirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for what is in %s: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func join(list []Found) string {
	paths := make([]string, len(list))
	for i, f := range list {
		paths[i] = f.Path
	}
	return strings.Join(paths, ", ")
}
