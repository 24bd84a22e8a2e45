package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/fieldpath"

	"github.com/flowlet/flowlet/internal/crifact"
)

// payload is what a volume shows: files by their path, which is clean and
// relative.
type payload map[string]content

type content struct {
	data []byte
	mode fs.FileMode
}

// Limits of names and paths, as in the kubelet.
const (
	mostName = 255
	mostPath = 4096
)

// check refuses names that lead out of the volume, are those of its own
// plumbing, or need a file to be a directory too.
func (p payload) check() error {
	for _, name := range p.paths() {
		if err := checkPath(name); err != nil {
			return fmt.Errorf("path %q: %w", name, err)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, both := p[dir]; both {
				return fmt.Errorf("path %q: %q is a file", name, dir)
			}
		}
	}
	return nil
}

func checkPath(name string) error {
	switch {
	case name == "" || name == ".":
		return errors.New("names no file")
	case path.IsAbs(name):
		return errors.New("may not be absolute")
	case len(name) > mostPath:
		return fmt.Errorf("is longer than %d bytes", mostPath)
	case strings.HasPrefix(name, ".."):
		return errors.New(`may not start with ".."`)
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return errors.New(`may not contain ".."`)
		}
		if len(part) > mostName {
			return fmt.Errorf("has a part that is longer than %d bytes", mostName)
		}
	}
	return nil
}

func (p payload) paths() []string { return slices.Sorted(maps.Keys(p)) }

// tops are the first elements of the paths, sorted.
func (p payload) tops() []string {
	var out []string
	for name := range p {
		top, _, _ := strings.Cut(name, "/")
		out = append(out, top)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// payload collects the files of a volume. Sources are merged in order, a later
// one wins.
func (s *Volumes) payload(p *corev1.Pod, v *corev1.Volume) (payload, error) {
	out := payload{}
	if d := v.DownwardAPI; d != nil {
		return out, s.downward(p, d.Items, d.DefaultMode, out)
	}
	for i := range v.Projected.Sources {
		source := &v.Projected.Sources[i]
		if source.DownwardAPI == nil {
			return nil, fmt.Errorf("projected.sources[%d]: this node runs without an API server, so a source can only be downwardAPI", i)
		}
		if err := s.downward(p, source.DownwardAPI.Items, v.Projected.DefaultMode, out); err != nil {
			return nil, fmt.Errorf("projected.sources[%d]: %w", i, err)
		}
	}
	return out, nil
}

// downward adds the files of a downward API. All that is wrong is told.
func (s *Volumes) downward(p *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode *int32, out payload) error {
	var errs []error
	for i := range items {
		item := &items[i]
		text, err := s.value(p, item)
		if err != nil {
			errs = append(errs, fmt.Errorf("file %s: %w", item.Path, err))
			continue
		}
		out[path.Clean(item.Path)] = content{data: []byte(text), mode: modeOf(item.Mode, mode)}
	}
	return errors.Join(errs...)
}

// modeOf returns the first mode that is set, or the API's default.
func modeOf(modes ...*int32) fs.FileMode {
	for _, m := range modes {
		if m != nil {
			return fs.FileMode(*m) & fs.ModePerm //nolint:gosec // validated
		}
	}
	return fs.FileMode(corev1.DownwardAPIVolumeSourceDefaultMode)
}

func (s *Volumes) value(p *corev1.Pod, item *corev1.DownwardAPIVolumeFile) (string, error) {
	switch {
	case item.FieldRef != nil:
		text, err := fieldpath.ExtractFieldPathAsString(p, item.FieldRef.FieldPath)
		if err != nil {
			return "", fmt.Errorf("fieldRef %s: %w", item.FieldRef.FieldPath, err)
		}
		return text, nil
	case item.ResourceFieldRef != nil:
		return s.resource(p, item.ResourceFieldRef)
	default:
		return "", errors.New("neither fieldRef nor resourceFieldRef is set")
	}
}

// resource resolves a request or limit of a container.
func (s *Volumes) resource(p *corev1.Pod, ref *corev1.ResourceFieldSelector) (string, error) {
	c := containerOf(p, ref.ContainerName)
	if c == nil {
		return "", fmt.Errorf("resourceFieldRef %s: the pod has no container %q", ref.Resource, ref.ContainerName)
	}
	return crifact.ResourceField(p, c, ref, s.Allocatable)
}

func containerOf(p *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
