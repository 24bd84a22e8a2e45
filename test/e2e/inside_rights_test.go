//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/test/devnode/images/inside"
)

// rights are what a process may do: users and groups, capabilities, confinement.
func rights() []view {
	return []view{user(), namedUser(), strictGroups(), nonRoot(), capabilities(), privileged(), confined(), localProfile()}
}

func user() view {
	return view{name: "user", shows: "runAsUser, runAsGroup, supplementalGroups, fsGroup on emptyDir", spec: `
securityContext: {runAsUser: 1000, runAsGroup: 2000, fsGroup: 3000, supplementalGroups: [4000]}
containers:
- {name: pod, image: IMAGE, args: [report, /disk, /memory], volumeMounts: [{name: disk, mountPath: /disk}, {name: memory, mountPath: /memory}]}
- {name: own, image: IMAGE, args: [report], securityContext: {runAsUser: 1001, runAsGroup: 2001}}
- {name: volume, image: IMAGE, args: [write, /disk/x, text], volumeMounts: [{name: disk, mountPath: /disk}]}
volumes: [{name: disk, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory}}]
`, check: func(s *seen) {
		require.Equal(s, v1.PodSucceeded, s.pod.Status.Phase, outline(s.pod))
		r := s.report("pod")
		require.Equal(s, "1000 1000 1000 1000", r.Status["Uid"])
		require.Equal(s, "2000 2000 2000 2000", r.Status["Gid"])
		require.Subset(s, strings.Fields(r.Status["Groups"]), []string{"3000", "4000"})
		for dir, mode := range map[string]string{"/disk": "dgrwxrwxrwx", "/memory": "dgtrwxrwxrwx"} {
			require.Equal(s, mode, r.Paths[dir].Mode, dir)
			require.Equal(s, uint32(3000), r.Paths[dir].GID, dir)
			require.True(s, r.Paths[dir].Writable, dir)
		}
		r = s.report("own")
		require.Equal(s, "1001 1001 1001 1001", r.Status["Uid"])
		require.Equal(s, "2001 2001 2001 2001", r.Status["Gid"])
		require.Subset(s, strings.Fields(r.Status["Groups"]), []string{"3000", "4000"})
	}}
}

// namedUser has a group in the image's own list, which counts unless the policy is strict.
func namedUser() view {
	return view{name: "named", shows: "groups of the user in the image", spec: `
securityContext: {supplementalGroups: [4000]}
containers: [{name: main, image: NAMED, args: [report]}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Equal(s, "65534 65534 65534 65534", r.Status["Uid"])
		require.Equal(s, "65534 65534 65534 65534", r.Status["Gid"])
		require.Subset(s, strings.Fields(r.Status["Groups"]), []string{"4000", "5000"})
	}}
}

func strictGroups() view {
	return view{name: "strict", shows: "supplementalGroupsPolicy Strict", not: []string{old}, spec: `
securityContext: {supplementalGroups: [4000], supplementalGroupsPolicy: Strict}
containers: [{name: main, image: NAMED, args: [report]}]
`, check: func(s *seen) {
		groups := strings.Fields(s.report("main").Status["Groups"])
		require.Contains(s, groups, "4000")
		require.NotContains(s, groups, "5000")
	}}
}

func nonRoot() view {
	return view{name: "nonroot", shows: "runAsNonRoot, verified against the image's user by number", spec: `
securityContext: {runAsNonRoot: true}
containers:
- {name: image, image: NUMBERED, args: [report]}
- {name: spec, image: IMAGE, args: [report], securityContext: {runAsUser: 7}}
`, check: func(s *seen) {
		r := s.report("image")
		require.Equal(s, "1000 1000 1000 1000", r.Status["Uid"])
		require.Equal(s, "0 0 0 0", r.Status["Gid"], "the runtime is told of the user alone, as by a kubelet")
		require.Equal(s, "7 7 7 7", s.report("spec").Status["Uid"])
	}}
}

func capabilities() view {
	const netBind, chown, netRaw = 1 << 10, 1, 1 << 13
	return view{name: "capabilities", shows: "capabilities, no new privileges", spec: `
containers:
- {name: usual, image: IMAGE, args: [report]}
- {name: one, image: IMAGE, args: [report], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}}
- {name: less, image: IMAGE, args: [report], securityContext: {capabilities: {drop: [CHOWN, NET_RAW]}}}
- {name: user, image: IMAGE, args: [report], securityContext: {runAsUser: 1000}}
`, check: func(s *seen) {
		usual, one, less := s.report("usual").Status, s.report("one").Status, s.report("less").Status
		require.Equal(s, "0", usual["NoNewPrivs"])
		require.Equal(s, "1", one["NoNewPrivs"])
		for _, set := range []string{"CapEff", "CapPrm", "CapBnd"} {
			require.Equal(s, uint64(netBind), hex(s, one[set]), set)
			require.Equal(s, hex(s, usual[set])&^(chown|netRaw), hex(s, less[set]), set)
			require.NotZero(s, hex(s, usual[set])&chown, set)
		}
		for _, set := range []string{"CapAmb", "CapInh"} {
			require.Zero(s, hex(s, usual[set]), set)
		}
		require.Zero(s, hex(s, s.report("user").Status["CapEff"]), "other users than root have none")
	}}
}

func privileged() view {
	return view{name: "privileged", shows: "privileged containers", spec: `
containers: [{name: main, image: IMAGE, args: [report, /proc/sys/kernel/hostname], securityContext: {privileged: true}}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Equal(s, inside.Fields(s.ownFile("/proc/self/status"))["CapEff"], r.Status["CapEff"], "all that this machine allows")
		require.Equal(s, "0", r.Status["Seccomp"])
		require.Contains(s, r.Devices, "kmsg", "the devices of the host")
		require.True(s, r.Paths["/proc/sys/kernel/hostname"].Writable)
	}}
}

func confined() view {
	return view{name: "confined", shows: "read-only root, masked and read-only paths, seccomp RuntimeDefault and Unconfined", spec: `
containers:
- name: main
  image: IMAGE
  args: [report, /, /data, /proc/kcore, /proc/acpi, /sys/firmware]
  securityContext: {readOnlyRootFilesystem: true, seccompProfile: {type: RuntimeDefault}}
  volumeMounts: [{name: data, mountPath: /data}]
- {name: writes, image: IMAGE, args: [write, /x, text], securityContext: {readOnlyRootFilesystem: true}}
- {name: free, image: IMAGE, args: [report], securityContext: {seccompProfile: {type: Unconfined}}}
volumes: [{name: data, emptyDir: {}}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Contains(s, r.Mount("/").Options, "ro")
		require.False(s, r.Paths["/"].Writable)
		require.True(s, r.Paths["/data"].Writable)
		require.Equal(s, "2", r.Status["Seccomp"])
		for _, path := range []string{"/proc/sys", "/proc/bus", "/proc/irq"} {
			require.Contains(s, r.Mount(path).Options, "ro", path)
		}
		require.Empty(s, r.Paths["/proc/acpi"].Names)
		require.Empty(s, r.Paths["/sys/firmware"].Names)
		for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats"} {
			if _, err := os.Stat(path); err == nil {
				require.Equal(s, path, r.Mount(path).Point, "hidden")
			}
		}
		require.Equal(s, int32(1), s.terminated("writes").ExitCode)
		require.Contains(s, s.output(s.pod, "writes"), "read-only file system")
		require.Equal(s, "0", s.report("free").Status["Seccomp"])
	}}
}

// localProfile forbids to ask for the priority, which nothing needs and the report shows.
func localProfile() view {
	return view{name: "profile", shows: "seccomp Localhost", spec: `
securityContext: {seccompProfile: {type: Localhost, localhostProfile: deep/no-priority.json}}
containers: [{name: main, image: IMAGE, args: [report]}, {name: own, image: IMAGE, args: [report], securityContext: {seccompProfile: {type: Unconfined}}}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Equal(s, "2", r.Status["Seccomp"])
		require.Equal(s, "operation not permitted", r.Priority)
		require.Equal(s, "20", s.report("own").Priority)
	}}
}

// writeProfile is what localProfile asks for.
func (a *agent) writeProfile() {
	a.t.Helper()
	dir := filepath.Join(a.root, "seccomp", "deep")
	require.NoError(a.t, os.MkdirAll(dir, 0o755))
	const profile = `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_ERRNO"}]}`
	require.NoError(a.t, os.WriteFile(filepath.Join(dir, "no-priority.json"), []byte(profile), 0o644))
}
