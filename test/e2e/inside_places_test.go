//go:build e2e

package e2e_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// places are where a process is: its names, its network, its namespaces.
func places() []view {
	return []view{names(), fullName(), ownDNS(), hostDNS(), onTheHost(), apart(), shared(), sysctls(), hostPorts(), hostPortTaken()}
}

func names() view {
	return view{name: "names", shows: "host name, subdomain, hosts file with aliases; cluster DNS with dnsConfig", spec: `
hostname: web
subdomain: pages
hostAliases: [{ip: 192.0.2.77, hostnames: [far, away]}]
dnsConfig: {nameservers: [192.0.2.53], searches: [example.com], options: [{name: timeout, value: "3"}, {name: ndots, value: "2"}]}
containers: [{name: main, image: IMAGE, args: [report, /etc/hosts, /etc/resolv.conf]}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Equal(s, "web", r.Hostname)
		require.Equal(s, "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"+
			"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"+
			s.pod.Status.PodIP+"\tweb.pages.default.svc.cluster.local\tweb\n\n# Entries added by HostAliases.\n192.0.2.77\tfar\taway\n", r.Paths["/etc/hosts"].Text)
		require.Equal(s, "-rw-r--r--", r.Paths["/etc/hosts"].Mode)
		dns := resolver(r.Paths["/etc/resolv.conf"].Text)
		require.Equal(s, []string{"10.96.0.10", "192.0.2.53"}, dns["nameserver"])
		require.Equal(s, []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}, dns["search"][:3])
		require.Equal(s, "example.com", dns["search"][len(dns["search"])-1])
		slices.Sort(dns["options"])
		require.Equal(s, []string{"ndots:2", "timeout:3"}, dns["options"])
	}}
}

// resolver are the words of each kind of line in a resolv.conf.
func resolver(text string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && !strings.HasPrefix(f[0], "#") {
			out[f[0]] = append(out[f[0]], f[1:]...)
		}
	}
	return out
}

func fullName() view {
	return view{name: "fqdn", shows: "setHostnameAsFQDN", spec: `
hostname: web
subdomain: pages
setHostnameAsFQDN: true
containers: [{name: main, image: IMAGE, args: [report]}]
`, check: func(s *seen) { require.Equal(s, "web.pages.default.svc.cluster.local", s.report("main").Hostname) }}
}

func ownDNS() view {
	return view{name: "dns", shows: "dnsPolicy None", spec: `
dnsPolicy: None
dnsConfig: {nameservers: [192.0.2.53, 192.0.2.54], searches: [example.com], options: [{name: ndots, value: "3"}, {name: use-vc}]}
containers: [{name: main, image: IMAGE, args: [report, /etc/resolv.conf]}]
`, check: func(s *seen) {
		require.Equal(s, map[string][]string{
			"nameserver": {"192.0.2.53", "192.0.2.54"}, "search": {"example.com"}, "options": {"ndots:3", "use-vc"},
		}, resolver(s.report("main").Paths["/etc/resolv.conf"].Text))
	}}
}

func hostDNS() view {
	return view{name: "hostdns", shows: "dnsPolicy Default", spec: `
dnsPolicy: Default
containers: [{name: main, image: IMAGE, args: [report, /etc/resolv.conf]}]
`, check: func(s *seen) {
		got, want := resolver(s.report("main").Paths["/etc/resolv.conf"].Text), resolver(s.ownFile("/etc/resolv.conf"))
		require.Equal(s, want["nameserver"], got["nameserver"])
		require.Equal(s, want["search"], got["search"])
	}}
}

func onTheHost() view {
	return view{name: "host", shows: "host network, PID and IPC", spec: `
hostNetwork: true
hostPID: true
hostIPC: true
containers: [{name: main, image: IMAGE, args: [report, /proc/net/fib_trie, /etc/hosts, /etc/resolv.conf]}]
`, check: func(s *seen) {
		r := s.report("main")
		host, err := os.Hostname()
		require.NoError(s, err)
		require.Equal(s, host, r.Hostname)
		require.NotEmpty(s, s.pod.Status.HostIP)
		require.Equal(s, s.pod.Status.HostIP, s.pod.Status.PodIP)
		require.Contains(s, r.Paths["/proc/net/fib_trie"].Text, s.pod.Status.HostIP+"\n")
		require.Equal(s, "# Kubernetes-managed hosts file (host network).\n"+s.ownFile("/etc/hosts"), r.Paths["/etc/hosts"].Text)
		require.Equal(s, resolver(s.ownFile("/etc/resolv.conf"))["nameserver"], resolver(r.Paths["/etc/resolv.conf"].Text)["nameserver"])
		for _, space := range []string{"net", "pid", "ipc"} {
			require.Equal(s, s.ownSpace(space), r.Spaces[space], space)
		}
		require.Contains(s, r.Processes, "flowlet")
	}}
}

// ownSpace is the ID of a namespace of this test, and of the runtime.
func (s *seen) ownSpace(name string) string {
	s.Helper()
	id, err := os.Readlink("/proc/self/ns/" + name)
	require.NoError(s, err)
	return id
}

func apart() view {
	return view{name: "apart", shows: "namespaces of pods and containers, `/dev/shm`", spec: `
containers:
- {name: one, image: IMAGE, args: [report, /dev/shm]}
- {name: two, image: IMAGE, args: [report]}
`, check: func(s *seen) {
		one, two := s.report("one"), s.report("two")
		for _, space := range []string{"net", "pid", "ipc", "uts", "mnt"} {
			require.NotEqual(s, s.ownSpace(space), one.Spaces[space], space)
		}
		for _, space := range []string{"net", "ipc", "uts"} {
			require.Equal(s, one.Spaces[space], two.Spaces[space], space)
		}
		require.NotEqual(s, one.Spaces["pid"], two.Spaces["pid"])
		require.Equal(s, []string{"demo"}, one.Processes)
		require.Equal(s, "dtrwxrwxrwx", one.Paths["/dev/shm"].Mode)
		require.Contains(s, one.Mount("/dev/shm").Super, "size=65536k")
		require.NotContains(s, one.Devices, "kmsg")
	}}
}

func shared() view {
	return view{name: "shared", shows: "shareProcessNamespace", spec: `
shareProcessNamespace: true
initContainers: [{name: other, image: IMAGE, command: [/bin/signals, -end, terminated], restartPolicy: Always}]
containers: [{name: main, image: IMAGE, command: [/bin/report]}]
`, check: func(s *seen) {
		r := s.report("main")
		require.ElementsMatch(s, []string{"pause", "signals", "report"}, r.Processes)
		require.NotEqual(s, s.ownSpace("pid"), r.Spaces["pid"])
		require.NotEqual(s, "1", r.Status["Pid"])
	}}
}

func sysctls() view {
	const port, shm, backlog = "/proc/sys/net/ipv4/ip_unprivileged_port_start", "/proc/sys/kernel/shm_rmid_forced", "/proc/sys/net/core/somaxconn"
	return view{name: "sysctls", shows: "sysctls, safe and allowed ones", spec: fmt.Sprintf(`
securityContext: {sysctls: [{name: net/ipv4/ip_unprivileged_port_start, value: "1000"}, {name: kernel.shm_rmid_forced, value: "1"}, {name: net.core.somaxconn, value: "777"}]}
containers: [{name: main, image: IMAGE, args: [report, %s, %s, %s]}]
`, port, shm, backlog), check: func(s *seen) {
		paths := s.report("main").Paths
		require.Equal(s, "1000\n", paths[port].Text)
		require.Equal(s, "1\n", paths[shm].Text)
		require.Equal(s, "777\n", paths[backlog].Text)
		require.False(s, paths[backlog].Writable)
	}}
}

const hostPort = 28080

func hostPorts() view {
	return view{name: "port", shows: "host ports", until: isReady, spec: fmt.Sprintf(`
priority: 1000
containers: [{name: main, image: IMAGE, args: [serve, -addr, ":8080"], ports: [{containerPort: 8080, hostPort: %d}]}]
`, hostPort), check: func(s *seen) {
		gateway := s.node.PodCIDR.Addr().Next()
		s.until("the port of the host answers", func() error {
			return s.get(fmt.Sprintf("http://%s/", net.JoinHostPort(gateway.String(), fmt.Sprint(hostPort))))
		})
	}}
}

func hostPortTaken() view {
	return view{name: "taken", shows: "a host port that is taken: the pod is rejected", spec: fmt.Sprintf(`
containers: [{name: main, image: IMAGE, args: [serve], ports: [{containerPort: 80, hostPort: %d}]}]
`, hostPort), check: func(s *seen) {
		require.Equal(s, v1.PodFailed, s.pod.Status.Phase)
		require.Equal(s, "NodePorts", s.pod.Status.Reason)
		require.Contains(s, s.pod.Status.Message, "free ports")
	}}
}
