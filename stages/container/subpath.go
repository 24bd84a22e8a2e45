package container

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
)

// subPath returns the part of the volume that is mounted, with its variables
// expanded; empty when it is the whole.
func subPath(vm *v1.VolumeMount, env *environment) (string, error) {
	part, field := vm.SubPath, "subPath"
	if vm.SubPathExpr != "" {
		var missing []string
		field = "subPathExpr"
		part = crifact.Expand(vm.SubPathExpr, func(name string) (string, bool) {
			value, _ := env.lookup(name)
			if value == "" {
				missing = append(missing, name)
			}
			return value, true
		})
		if slices.Sort(missing); len(missing) > 0 {
			return "", fmt.Errorf("subPathExpr %q: missing value for %s: set it in env", vm.SubPathExpr, strings.Join(slices.Compact(missing), ", "))
		}
	}
	if part != "" && !filepath.IsLocal(part) {
		return "", fmt.Errorf("%s %q: must be a relative path without \"..\"", field, part)
	}
	return part, nil
}

// part has a part of a volume mounted where nobody can exchange it.
func (c *Containers) part(st *Start, index int, name string) (string, error) {
	s, ok := c.Volumes.(SubPaths)
	if !ok {
		return "", errors.New("subPath: volumes of this node cannot be mounted in part")
	}
	return s.SubPath(st.State.Pod(), st.Container, index, name)
}

// imageOf names an image that the runtime mounts. It has been looked up or
// pulled like that of a container.
func (c *Containers) imageOf(st *Start, ref string) (*runtimeapi.ImageSpec, error) {
	if c.ImageVolumes == nil || !c.ImageVolumes() {
		return nil, errors.New("the container runtime does not mount images as volumes: it takes containerd 2.1 or CRI-O 1.31")
	}
	image := st.State.Images[ref]
	if image.ID == "" {
		return nil, fmt.Errorf("image %q has not been pulled", ref)
	}
	return &runtimeapi.ImageSpec{Image: image.ID, UserSpecifiedImage: ref, Annotations: st.State.Pod().Annotations}, nil
}
