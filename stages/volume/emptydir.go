package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/mount-utils"
)

const emptyDirPlugin = "kubernetes.io/empty-dir"

// ensureEmptyDir makes the directory and, for a medium in memory, mounts it. A
// mark beside the volume says that it was set up, so that a directory on disk
// is left alone from then on.
func (s *Volumes) ensureEmptyDir(p *corev1.Pod, v *corev1.Volume) error {
	dir, err := s.volume(p.UID, emptyDirPlugin, v.Name)
	if err != nil {
		return err
	}
	meta, err := s.meta(p.UID, emptyDirPlugin, v.Name)
	if err != nil {
		return err
	}
	on, err := mountAt(dir, s.Mounter)
	if err != nil {
		return err
	}
	ready := filepath.Join(meta, "ready")
	medium := v.EmptyDir.Medium
	isReady := exists(ready) && exists(dir) && (medium == corev1.StorageMediumDefault || on != nil)
	if isReady && !isHuge(medium) {
		return nil
	}
	if on == nil {
		if err := makeOpen(dir); err != nil {
			return err
		}
	}
	switch {
	case medium == corev1.StorageMediumDefault:
	case medium == corev1.StorageMediumMemory:
		err = s.mountMemory(dir, on, s.memorySize(p, v.EmptyDir.SizeLimit))
	case isHuge(medium):
		err = s.mountHuge(p, medium, dir, on)
	default:
		err = fmt.Errorf("medium %q is not known", medium)
	}
	if err != nil || isReady {
		return err
	}
	giveGroup(p, dir)
	if err := os.MkdirAll(meta, privateDir); err != nil {
		return err
	}
	return os.WriteFile(ready, nil, 0o600)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// mountAt returns the topmost mount whose mount point is dir, or nil.
func mountAt(dir string, mounts lister) (*mount.MountPoint, error) {
	all, err := mounts.List()
	if err != nil {
		return nil, fmt.Errorf("looking for a mount at %s: %w", dir, err)
	}
	dir = realPath(dir)
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Path == dir {
			return &all[i], nil
		}
	}
	return nil, nil
}

// makeOpen makes a directory that every user may write, whatever the umask.
func makeOpen(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), privateDir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o777)
}

// giveGroup hands the fresh volume to the pod's fsGroup. Like the kubelet it
// goes on when that fails: the directory can be written by everybody.
func giveGroup(p *corev1.Pod, dir string) {
	sc := p.Spec.SecurityContext
	if sc == nil || sc.FSGroup == nil {
		return
	}
	if err := os.Lchown(dir, -1, int(*sc.FSGroup)); err != nil {
		return
	}
	if info, err := os.Lstat(dir); err == nil {
		_ = os.Chmod(dir, info.Mode()|os.ModeSetgid|0o770)
	}
}

// mountMemory mounts a file system in memory of at most size bytes, unless on
// says that there is one.
func (s *Volumes) mountMemory(dir string, on *mount.MountPoint, size int64) error {
	if on != nil {
		if on.Type != "tmpfs" {
			return fmt.Errorf("%s is mounted as %s; tmpfs is wanted", dir, on.Type)
		}
		return nil
	}
	var options []string
	if size > 0 {
		options = append(options, fmt.Sprintf("size=%d", size))
	}
	// Kernels before 6.4 do not know noswap.
	err := s.Mounter.Mount("tmpfs", dir, "tmpfs", append(options[:len(options):len(options)], "noswap"))
	if errors.Is(err, unix.EINVAL) {
		err = s.Mounter.Mount("tmpfs", dir, "tmpfs", options)
	}
	return err
}

// memorySize is the least of what the node's pods, the pod and the volume may
// have; 0 is the kernel's default.
func (s *Volumes) memorySize(p *corev1.Pod, own *resource.Quantity) int64 {
	size := s.NodeMemory
	smaller := func(limit int64) {
		if limit > 0 && (size == 0 || limit < size) {
			size = limit
		}
	}
	if s.PodMemory != nil {
		smaller(s.PodMemory(p))
	}
	if own != nil {
		smaller(own.Value())
	}
	return size
}

func isHuge(m corev1.StorageMedium) bool {
	return m == corev1.StorageMediumHugePages || strings.HasPrefix(string(m), string(corev1.StorageMediumHugePagesPrefix))
}

func (s *Volumes) mountHuge(p *corev1.Pod, medium corev1.StorageMedium, dir string, on *mount.MountPoint) error {
	size, err := hugePageSize(p, medium)
	if err != nil {
		return err
	}
	if on == nil {
		return s.Mounter.Mount("nodev", dir, "hugetlbfs", []string{fmt.Sprintf("pagesize=%d", size)})
	}
	if on.Type != "hugetlbfs" {
		return fmt.Errorf("%s is mounted as %s; hugetlbfs is wanted", dir, on.Type)
	}
	return nil
}

// hugePageSize returns the page size of the medium in bytes. The containers
// must ask for pages of that size; without one in the medium they must agree.
func hugePageSize(p *corev1.Pod, medium corev1.StorageMedium) (int64, error) {
	asked := map[int64]bool{}
	lists := []corev1.ResourceList{}
	if r := p.Spec.Resources; r != nil {
		lists = append(lists, r.Requests)
	}
	for _, cs := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range cs {
			lists = append(lists, cs[i].Resources.Requests)
		}
	}
	for _, list := range lists {
		for name := range list {
			text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
			if !ok {
				continue
			}
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return 0, fmt.Errorf("resource %s: %w", name, err)
			}
			asked[q.Value()] = true
		}
	}
	if text, sized := strings.CutPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix)); sized {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return 0, fmt.Errorf("medium %s: %w", medium, err)
		}
		if !asked[q.Value()] {
			return 0, fmt.Errorf("medium %s: no container requests huge pages of that size", medium)
		}
		return q.Value(), nil
	}
	if len(asked) != 1 {
		return 0, fmt.Errorf("medium %s: the containers must request huge pages of exactly one size; they request %d", medium, len(asked))
	}
	for size := range asked {
		return size, nil
	}
	return 0, nil // not reached: there is one
}
