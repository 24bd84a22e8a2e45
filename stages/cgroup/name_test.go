package cgroup_test

import (
	"testing"

	"github.com/opencontainers/cgroups/systemd"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/stages/cgroup"
)

const uid = types.UID("12ab-34cd")

func TestParentAsTheRuntimeIsTold(t *testing.T) {
	guaranteed, burstable, bestEffort := pod("1", "1", "1Gi", "1Gi"), pod("1", "", "", ""), pod("", "", "", "")
	tests := []struct {
		name   string
		config cgroup.Config
		pod    *corev1.Pod
		want   string
	}{
		{"cgroupfs guaranteed", cgroup.Config{Driver: cgroup.Cgroupfs, PerQOS: true}, guaranteed, "/kubepods/pod12ab-34cd"},
		{"cgroupfs burstable", cgroup.Config{Driver: cgroup.Cgroupfs, PerQOS: true}, burstable, "/kubepods/burstable/pod12ab-34cd"},
		{"cgroupfs best effort below a root", cgroup.Config{Driver: cgroup.Cgroupfs, PerQOS: true, Root: "/a/b/"}, bestEffort, "/a/b/kubepods/besteffort/pod12ab-34cd"},
		{"systemd guaranteed", cgroup.Config{Driver: cgroup.Systemd, PerQOS: true}, guaranteed, "/kubepods.slice/kubepods-pod12ab_34cd.slice"},
		{"systemd burstable", cgroup.Config{Driver: cgroup.Systemd, PerQOS: true}, burstable, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab_34cd.slice"},
		{"systemd below a root", cgroup.Config{Driver: cgroup.Systemd, PerQOS: true, Root: "/a-x"}, guaranteed, "/a_x.slice/a_x-kubepods.slice/a_x-kubepods-pod12ab_34cd.slice"},
		{"without cgroups of pods", cgroup.Config{Driver: cgroup.Cgroupfs, Root: "/a"}, guaranteed, "/a"},
		{"without root and cgroups of pods", cgroup.Config{Driver: cgroup.Systemd}, guaranteed, "/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := cgroup.NewNop(tt.config)
			require.NoError(t, err)
			require.Equal(t, tt.want, m.ParentFor(tt.pod))
			require.NoError(t, m.Ensure(t.Context(), tt.pod))
		})
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for _, c := range []cgroup.Config{
		{Driver: "other"}, {Driver: cgroup.Systemd, Root: "/a_b"}, {Driver: cgroup.Systemd, Root: "/a.slice"},
	} {
		_, err := cgroup.NewNop(c)
		require.Error(t, err, c)
	}
}

func TestUIDsThatCannotNameACgroup(t *testing.T) {
	m, err := cgroup.NewNop(cgroup.Config{Driver: cgroup.Cgroupfs, PerQOS: true})
	require.NoError(t, err)
	for _, bad := range []types.UID{"", "../x", "a/b", "a_b"} {
		p := pod("", "", "", "")
		p.UID = bad
		require.ErrorContains(t, m.Ensure(t.Context(), p), "ns/p")
		require.Error(t, m.RemovePod(t.Context(), bad))
	}
}

func TestUIDsAreReadBackFromNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := types.UID(rapid.StringMatching(`[a-f0-9]{1,8}(-[a-f0-9]{1,4}){0,4}`).Draw(t, "uid"))
		for _, d := range []cgroup.Driver{cgroup.Cgroupfs, cgroup.Systemd} {
			path := cgroup.Name{"kubepods", "burstable", "pod" + string(id)}.Path(d)
			got, ok := cgroup.PodUID(path[lastSlash(path)+1:], d)
			if !ok || got != id {
				t.Fatalf("%s: %q from %s", d, got, path)
			}
			if d == cgroup.Systemd { // systemd's own rule for the place of a slice
				if want, err := systemd.ExpandSlice(path[lastSlash(path)+1:]); err != nil || want != path {
					t.Fatalf("%s is at %s: %v", path, want, err)
				}
			}
		}
	})
	for dir, d := range map[string]cgroup.Driver{"burstable": cgroup.Cgroupfs, "pod": cgroup.Cgroupfs, "kubepods-burstable.slice": cgroup.Systemd, "podx": cgroup.Systemd} {
		_, ok := cgroup.PodUID(dir, d)
		require.False(t, ok, dir)
	}
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

// pod has one container; "" leaves a value out.
func pod(cpuRequest, cpuLimit, memRequest, memLimit string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", "p", uid
	p.Spec.Containers = []corev1.Container{container(cpuRequest, cpuLimit, memRequest, memLimit)}
	return p
}

func container(cpuRequest, cpuLimit, memRequest, memLimit string) corev1.Container {
	list := func(cpu, mem string) corev1.ResourceList {
		out := corev1.ResourceList{}
		if cpu != "" {
			out[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if mem != "" {
			out[corev1.ResourceMemory] = resource.MustParse(mem)
		}
		return out
	}
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(cpuRequest, memRequest), Limits: list(cpuLimit, memLimit)}}
}
