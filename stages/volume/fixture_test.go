package volume_test

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/mount-utils"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/volume"
)

type fixture struct {
	volumes *volume.Volumes
	dirs    *volume.Dirs
	mounts  *mount.FakeMounter
	root    string
	logs    string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{root: filepath.Join(t.TempDir(), "root"), logs: filepath.Join(t.TempDir(), "logs"), mounts: mount.NewFakeMounter(nil)}
	c := volume.Config{RootDir: f.root, LogRoot: f.logs, Mounter: f.mounts, NodeMemory: 1 << 30}
	f.volumes, f.dirs = volume.New(c), volume.NewDirs(c)
	return f
}

// path is below the pod's directory.
func (f *fixture) path(parts ...string) string {
	return filepath.Join(append([]string{f.root, "pods", "u1"}, parts...)...)
}

func testPod(volumes ...corev1.Volume) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", "p", "u1"
	p.Spec.Containers = []corev1.Container{{Name: "c"}}
	p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	p.Spec.Volumes = volumes
	return p
}

func state(p *corev1.Pod) *pod.State {
	return &pod.State{Identity: pod.Identity{UID: p.UID, Namespace: p.Namespace, Name: p.Name}}
}

func emptyDir(medium corev1.StorageMedium, size string) corev1.Volume {
	v := corev1.Volume{Name: "v"}
	v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: medium}
	if size != "" {
		q := resource.MustParse(size)
		v.EmptyDir.SizeLimit = &q
	}
	return v
}

func hostPath(path string, kind corev1.HostPathType) corev1.Volume {
	v := corev1.Volume{Name: "v"}
	v.HostPath = &corev1.HostPathVolumeSource{Path: path, Type: &kind}
	return v
}
