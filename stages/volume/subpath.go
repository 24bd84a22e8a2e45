package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// subPaths is the directory of a pod where parts of volumes are bound:
// <volume>/<container>/<index of the volume mount>.
const subPaths = "volume-subpaths"

// SubPath binds a part of a volume to a place of its own and returns that
// place, which the runtime may mount: nobody can change what it leads to. The
// volume mount is that of c with this index; name is the part, relative, with
// variables expanded. A part that is missing becomes a directory with the mode
// of the volume. A place that is bound already stays, unless the part was
// replaced. Unmount undoes it.
func (s *Volumes) SubPath(p *corev1.Pod, c *corev1.Container, index int, name string) (string, error) {
	volume := c.VolumeMounts[index].Name
	target, err := s.bindPart(p, volume, name, filepath.Join(c.Name, strconv.Itoa(index)))
	if err != nil {
		return "", fmt.Errorf("subPath %q: %w", name, err)
	}
	return target, nil
}

func (s *Volumes) bindPart(p *corev1.Pod, volume, name, place string) (string, error) {
	if !filepath.IsLocal(name) || strings.Contains(name, "\x00") {
		return "", errors.New(`it has to be relative, without ".."`)
	}
	if _, err := component("container", filepath.Dir(place)); err != nil {
		return "", err
	}
	root, err := s.VolumePath(p, volume)
	if err != nil {
		return "", err
	}
	dir, err := s.subPathDir(p, volume)
	if err != nil {
		return "", err
	}
	part, err := openPart(root, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = part.Close() }()
	target := filepath.Join(dir, place)
	return target, s.bind(part, target)
}

func (s *Volumes) subPathDir(p *corev1.Pod, volume string) (string, error) {
	own, err := s.pod(p.UID)
	if err != nil {
		return "", err
	}
	volume, err = component("volume", volume)
	return filepath.Join(own, subPaths, volume), err
}

// bind makes target show what the handle is of.
func (s *Volumes) bind(source *os.File, target string) error {
	want, err := source.Stat()
	if err != nil {
		return err
	}
	on, err := mountAt(target, s.Mounter)
	if err != nil {
		return err
	}
	if on != nil {
		if is, err := os.Lstat(target); err == nil && os.SameFile(is, want) {
			return nil
		}
		if err := s.detachAll(target); err != nil {
			return err
		}
	}
	if err := makeTarget(target, want.IsDir()); err != nil {
		return err
	}
	// The kernel takes what the handle is of, whatever became of its path.
	return s.Mounter.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), target, "", []string{optionBind})
}

// makeTarget makes what can be mounted on: a directory, or a file for all else.
func makeTarget(target string, dir bool) error {
	info, err := os.Lstat(target)
	if err == nil && info.IsDir() == dir && (dir || info.Mode().IsRegular()) {
		return nil
	}
	if err == nil {
		err = os.Remove(target) // an empty one, for a part of another kind
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), privateDir); err != nil {
		return err
	}
	if dir {
		return os.Mkdir(target, privateDir)
	}
	return os.WriteFile(target, nil, 0o640)
}

// detachAll takes away what is mounted at target, one over the other.
func (s *Volumes) detachAll(target string) error {
	all, err := mountsBelow(target, s.Mounter)
	if err != nil {
		return err
	}
	at := realPath(target)
	for _, m := range all {
		if m != at {
			continue // it goes with the one that it is mounted on
		}
		if err := s.detach(target); err != nil {
			return err
		}
	}
	return nil
}

func (s *Volumes) detach(target string) error {
	if d, ok := s.Mounter.(detacher); ok {
		return d.Detach(target)
	}
	return s.Mounter.Unmount(target)
}

// undoSubPaths takes away all bound parts that are found of a pod. stuck are
// the volumes of which some are left.
func (s *Volumes) undoSubPaths(ctx context.Context, state *pod.State) (errs []error, stuck map[string]bool) {
	own, err := s.pod(state.UID())
	if err != nil {
		return []error{err}, nil
	}
	root, stuck := filepath.Join(own, subPaths), map[string]bool{}
	volumes, err := subdirs(root)
	if err != nil {
		return []error{err}, nil
	}
	for _, v := range volumes {
		err := context.Cause(ctx)
		if err == nil {
			err = s.undoParts(filepath.Join(root, v))
		}
		if err != nil {
			stuck[v] = true
			errs = append(errs, fmt.Errorf("parts of volume %s of pod %s: %w", v, state.FullName(), err))
		}
	}
	if len(errs) == 0 {
		if err := os.Remove(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errs, stuck
}

// undoParts empties the directory of one volume. Mounts are where bind puts
// them, two levels down; deeper ones go with them.
func (s *Volumes) undoParts(dir string) error {
	containers, err := subdirs(dir)
	if err != nil {
		return err
	}
	for _, c := range containers {
		places, err := os.ReadDir(filepath.Join(dir, c))
		if err != nil {
			return err
		}
		for _, place := range places {
			if err := s.detachAll(filepath.Join(dir, c, place.Name())); err != nil {
				return err
			}
		}
	}
	return removeTree(dir, s.Mounter)
}
