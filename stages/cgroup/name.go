package cgroup

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Driver says who manages cgroups, and so how they are named.
type Driver string

// The drivers of the kubelet's field cgroupDriver.
const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

const (
	kubepods   = "kubepods"
	podPrefix  = "pod"
	sliceEnd   = ".slice"
	systemRoot = "/"
)

// Name is a cgroup as a list of components below the root, such as
// ["kubepods", "burstable", "pod1234-5678"].
type Name []string

// Path returns the path of the cgroup below a mount point: for cgroupfs the
// components joined, for systemd nested slices in which "-" of a component is
// written "_": /kubepods.slice/kubepods-pod1234_5678.slice.
func (n Name) Path(d Driver) string {
	if d != Systemd {
		return systemRoot + path.Join(n...)
	}
	out, prefix := systemRoot, ""
	for _, part := range n {
		prefix += strings.ReplaceAll(part, "-", "_")
		out = path.Join(out, prefix+sliceEnd)
		prefix += "-"
	}
	return out
}

// unit returns the systemd slice of the cgroup and the slice that holds it.
func (n Name) unit() (parent, name string) {
	dir, name := path.Split(n.Path(Systemd))
	if dir == systemRoot {
		return "-.slice", name
	}
	return path.Base(dir), name
}

func (n Name) child(component string) Name {
	return append(append(Name{}, n...), component)
}

// rootName splits the field cgroupRoot, which is a path of plain components
// with either driver: "/a/b" is a.slice/a-b.slice with systemd.
func rootName(root string, d Driver) (Name, error) {
	var out Name
	for part := range strings.SplitSeq(path.Clean("/"+root), "/") {
		if part == "" {
			continue
		}
		if d == Systemd && (strings.HasSuffix(part, sliceEnd) || strings.Contains(part, "_")) {
			return nil, fmt.Errorf("cgroupRoot %s: with the systemd driver write plain names, without %q and %q", root, sliceEnd, "_")
		}
		out = append(out, part)
	}
	return out, nil
}

// qosLevels are the cgroups that hold pods, by class. Guaranteed pods are
// directly below kubepods.
func qosLevel(base Name, class corev1.PodQOSClass) Name {
	if class == corev1.PodQOSGuaranteed {
		return base
	}
	return base.child(strings.ToLower(string(class)))
}

// podComponent refuses what cannot be one component of a cgroup name: nothing
// outside the pod's own cgroup may be touched, whatever a manifest says.
func podComponent(uid types.UID) (string, error) {
	s := string(uid)
	if s == "" || strings.ContainsAny(s, "/_\x00\n") || len(s) > 200 {
		return "", fmt.Errorf("pod UID %q cannot name a cgroup: it must be 1 to 200 characters without \"/\" and \"_\"", s)
	}
	return podPrefix + s, nil
}

// podUID reads a UID back from the directory of a pod's cgroup.
func podUID(dir string, d Driver) (types.UID, bool) {
	if d == Systemd {
		base, isSlice := strings.CutSuffix(dir, sliceEnd)
		if !isSlice {
			return "", false
		}
		dir = strings.ReplaceAll(base[strings.LastIndex(base, "-")+1:], "_", "-")
	}
	uid, ok := strings.CutPrefix(dir, podPrefix)
	return types.UID(uid), ok && uid != ""
}
