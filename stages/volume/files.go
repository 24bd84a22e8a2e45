package volume

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	downwardPlugin  = "kubernetes.io/downward-api"
	projectedPlugin = "kubernetes.io/projected"
)

func filesPlugin(v *corev1.Volume) string {
	if v.DownwardAPI != nil {
		return downwardPlugin
	}
	return projectedPlugin
}

// ensureFiles makes a volume of files that the agent writes: in memory, and
// swapped all at once. The mount is the mark that the place is ready, the link
// ..data that the files are.
func (s *Volumes) ensureFiles(p *corev1.Pod, v *corev1.Volume) error {
	files, err := s.payload(p, v)
	if err == nil {
		err = files.check()
	}
	if err != nil {
		return err
	}
	dir, err := s.volume(p.UID, filesPlugin(v), v.Name)
	if err != nil {
		return err
	}
	on, err := mountAt(dir, s.Mounter)
	if err != nil {
		return err
	}
	w := &swapper{step: s.step}
	if on == nil {
		if err := errors.Join(makeOpen(dir), w.reached("directory")); err != nil {
			return err
		}
	}
	if err := s.mountMemory(dir, on, s.memorySize(p, nil)); err != nil {
		return err
	}
	if err := w.reached("mounted"); err != nil {
		return err
	}
	if !exists(filepath.Join(dir, dataLink)) {
		giveGroup(p, dir)
	}
	if sc := p.Spec.SecurityContext; sc != nil {
		w.group = sc.FSGroup
	}
	if w.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer func() { _ = w.root.Close() }()
	if err := makeMountPoints(w.root, nested(p, v.Name)); err != nil {
		return err
	}
	return w.converge(files)
}

// makeMountPoints makes the directories on which others are mounted: the volume
// is read-only for the runtime. What is there already is left alone.
func makeMountPoints(root *os.Root, dirs []string) error {
	for _, dir := range dirs {
		if _, err := root.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// nested lists, relative to the volume, where other volumes are mounted inside
// of it.
func nested(p *corev1.Pod, volume string) []string {
	var out []string
	inside := func(mounts []corev1.VolumeMount) {
		for _, outer := range mounts {
			if outer.Name != volume || outer.SubPath != "" || outer.SubPathExpr != "" {
				continue
			}
			base := path.Join("/", outer.MountPath)
			for _, m := range mounts {
				if rel, ok := strings.CutPrefix(path.Join("/", m.MountPath), strings.TrimSuffix(base, "/")+"/"); ok && rel != "" {
					out = append(out, rel)
				}
			}
		}
	}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			inside(list[i].VolumeMounts)
		}
	}
	for i := range p.Spec.EphemeralContainers {
		inside(p.Spec.EphemeralContainers[i].VolumeMounts)
	}
	return out
}
