//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// seen is a pod and what its processes are to see.
type seen struct {
	name, spec string
	check      func(t *testing.T, a *agent, p *v1.Pod)
}

// What a process sees of its pod: each of the pods shows one side of it and runs to its end.
func TestWhatAProcessSees(t *testing.T) {
	all := []seen{environment(), arguments(), place(), names(), user(), confined(), lastWords(), inMemory(), onTheHost()}
	a := newAgent(t, node)
	for _, s := range all {
		a.write(s.name+".yaml", podOf(s.name, "restartPolicy: Never\n"+s.spec))
	}
	a.start()
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			part := a.in(t)
			s.check(t, part, part.untilPod(s.name, "has ended", func(p *v1.Pod) bool {
				return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
			}))
		})
	}
	t.Run("links to the logs", func(t *testing.T) { a.in(t).logsAreLinked() })
}

func environment() seen {
	return seen{"environment", `
containers:
- name: main
  image: IMAGE
  args: [env]
  resources: {limits: {cpu: 250m, memory: 64Mi}, requests: {cpu: 100m}}
  env:
  - {name: A, value: one}
  - {name: B, value: $(A) $$(A) $(NONE)}
  - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
  - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
  - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
  - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
  - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
  - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
  - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
  - {name: REQUEST, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
`, func(t *testing.T, a *agent, p *v1.Pod) {
		got := strings.Split(a.output(p, "main"), "\n")
		for _, want := range []string{
			"A=one", "B=one $(A) $(NONE)", "POD=environment-e2e", "NS=default", "UID=" + string(p.UID), "APP=environment", "NODE=e2e",
			"IP=" + p.Status.PodIP, "HOST_IP=" + p.Status.HostIP, "CPU=250", "CPUS=1", "MEMORY=64", "REQUEST=100", "PATH=/bin",
			"HOSTNAME=environment-e2e",
		} {
			require.Contains(t, got, want)
		}
		require.NotEmpty(t, p.Status.PodIP)
	}}
}

func arguments() seen {
	return seen{"arguments", `
containers:
- {name: args, image: IMAGE, args: [log, -n, "1", $(A) $$(A) $(NONE)], env: [{name: A, value: one}]}
- {name: command, image: IMAGE, command: [/bin/log, -n, "1", $(A)], env: [{name: A, value: two}]}
- {name: both, image: IMAGE, command: [/bin/demo], args: [log, -n, "1", three]}
`, func(t *testing.T, a *agent, p *v1.Pod) {
		require.Equal(t, "1 one $(A) $(NONE)\n", a.output(p, "args"))
		require.Equal(t, "1 two\n", a.output(p, "command"))
		require.Equal(t, "1 three\n", a.output(p, "both"))
	}}
}

func place() seen {
	return seen{
		"place", `containers: [{name: main, image: IMAGE, args: [ls], workingDir: /etc}]`,
		func(t *testing.T, a *agent, p *v1.Pod) {
			require.Subset(t, strings.Fields(a.output(p, "main")), []string{"passwd", "hosts", "hostname", "resolv.conf"})
		},
	}
}

func names() seen {
	return seen{"names", `
hostname: web
subdomain: pages
hostAliases: [{ip: 192.0.2.77, hostnames: [far, away]}]
dnsConfig: {nameservers: [192.0.2.53], searches: [example.com], options: [{name: timeout, value: "3"}]}
containers:
- {name: hostname, image: IMAGE, args: [cat, /proc/sys/kernel/hostname]}
- {name: hosts, image: IMAGE, args: [cat, /etc/hosts]}
- {name: dns, image: IMAGE, args: [cat, /etc/resolv.conf]}
`, func(t *testing.T, a *agent, p *v1.Pod) {
		require.Equal(t, "web\n", a.output(p, "hostname"))
		hosts := a.output(p, "hosts")
		require.Contains(t, hosts, "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
		require.Contains(t, hosts, p.Status.PodIP+"\tweb.pages.default.svc.cluster.local\tweb\n")
		require.Contains(t, hosts, "\n# Entries added by HostAliases.\n192.0.2.77\tfar\taway\n")
		dns := a.output(p, "dns")
		require.Contains(t, dns, "nameserver 10.96.0.10\nnameserver 192.0.2.53\n")
		require.Regexp(t, `(?m)^search default.svc.cluster.local svc.cluster.local cluster.local .*\bexample.com$`, dns)
		require.Regexp(t, `(?m)^options .*\bndots:5\b`, dns)
		require.Regexp(t, `(?m)^options .*\btimeout:3\b`, dns)
	}}
}

func user() seen {
	return seen{"user", `
securityContext: {runAsUser: 1000, runAsGroup: 2000, fsGroup: 3000, supplementalGroups: [4000]}
containers:
- {name: pod, image: IMAGE, args: [cat, /proc/self/status]}
- {name: own, image: IMAGE, args: [cat, /proc/self/status], securityContext: {runAsUser: 1001}}
- {name: volume, image: IMAGE, args: [write, /data/x, text], volumeMounts: [{name: data, mountPath: /data}]}
volumes: [{name: data, emptyDir: {}}]
`, func(t *testing.T, a *agent, p *v1.Pod) {
		require.Equal(t, v1.PodSucceeded, p.Status.Phase, "with the group of the volume a file can be written: %s", outline(p))
		got := fields(a.output(p, "pod"))
		require.Equal(t, "1000 1000 1000 1000", got["Uid"])
		require.Equal(t, "2000 2000 2000 2000", got["Gid"])
		require.Subset(t, strings.Fields(got["Groups"]), []string{"3000", "4000"})
		got = fields(a.output(p, "own"))
		require.Equal(t, "1001 1001 1001 1001", got["Uid"])
		require.Equal(t, "2000 2000 2000 2000", got["Gid"])
	}}
}

// fields are the lines of a status file in /proc, with single spaces.
func fields(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(line, ":")
		out[k] = strings.Join(strings.Fields(v), " ")
	}
	return out
}

func confined() seen {
	return seen{"confined", `
containers:
- name: readonly
  image: IMAGE
  args: [write, /x, text]
  securityContext: {readOnlyRootFilesystem: true}
- name: few
  image: IMAGE
  args: [cat, /proc/self/status]
  securityContext:
    allowPrivilegeEscalation: false
    seccompProfile: {type: RuntimeDefault}
    capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}
- {name: usual, image: IMAGE, args: [cat, /proc/self/status]}
- {name: privileged, image: IMAGE, args: [cat, /proc/self/status], securityContext: {privileged: true}}
`, func(t *testing.T, a *agent, p *v1.Pod) {
		require.Equal(t, int32(1), status(p, "readonly").State.Terminated.ExitCode)
		require.Contains(t, a.output(p, "readonly"), "read-only file system")
		few, usual, privileged := fields(a.output(p, "few")), fields(a.output(p, "usual")), fields(a.output(p, "privileged"))
		require.Equal(t, "0000000000000400", few["CapEff"])
		require.Equal(t, "1", few["NoNewPrivs"])
		require.Equal(t, "2", few["Seccomp"])
		require.Equal(t, "0", usual["NoNewPrivs"])
		require.Equal(t, "0", usual["Seccomp"])
		own, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		require.Equal(t, fields(string(own))["CapEff"], privileged["CapEff"], "all that this machine allows")
		require.Less(t, usual["CapEff"], privileged["CapEff"])
	}}
}

func lastWords() seen {
	return seen{"words", `
containers:
- {name: usual, image: IMAGE, args: [write, /dev/termination-log, bye]}
- {name: other, image: IMAGE, args: [write, /tmp/words, so long], terminationMessagePath: /tmp/words}
- {name: logs, image: IMAGE, args: [get, "http://127.0.0.1:1/"], terminationMessagePolicy: FallbackToLogsOnError}
- {name: none, image: IMAGE, args: [exit, "5"]}
`, func(t *testing.T, _ *agent, p *v1.Pod) {
		require.Equal(t, v1.PodFailed, p.Status.Phase)
		require.Equal(t, "bye\n", status(p, "usual").State.Terminated.Message)
		require.Equal(t, "so long\n", status(p, "other").State.Terminated.Message)
		require.Contains(t, status(p, "logs").State.Terminated.Message, "connection refused")
		require.Equal(t, int32(5), status(p, "none").State.Terminated.ExitCode)
		require.Equal(t, "Error", status(p, "none").State.Terminated.Reason)
		require.Empty(t, status(p, "none").State.Terminated.Message)
	}}
}

func inMemory() seen {
	return seen{"memory", `
containers:
- name: main
  image: IMAGE
  args: [cat, /proc/mounts]
  volumeMounts: [{name: fast, mountPath: /fast}, {name: slow, mountPath: /slow}, {name: fast, mountPath: /readonly, readOnly: true}]
volumes:
- {name: fast, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
- {name: slow, emptyDir: {}}
`, func(t *testing.T, a *agent, p *v1.Pod) {
		mounts := a.output(p, "main")
		require.Regexp(t, `(?m)^tmpfs /fast tmpfs rw,.*\bsize=1024k\b`, mounts)
		require.Regexp(t, `(?m)^tmpfs /readonly tmpfs ro,.*\bsize=1024k\b`, mounts)
		require.Regexp(t, `(?m)^\S+ /slow \S+ rw,`, mounts)
	}}
}

func onTheHost() seen {
	return seen{"host", `
hostNetwork: true
containers:
- {name: hostname, image: IMAGE, args: [cat, /proc/sys/kernel/hostname]}
- {name: addresses, image: IMAGE, args: [cat, /proc/net/fib_trie]}
- {name: hosts, image: IMAGE, args: [cat, /etc/hosts]}
`, func(t *testing.T, a *agent, p *v1.Pod) {
		host, err := os.Hostname()
		require.NoError(t, err)
		require.Equal(t, host+"\n", a.output(p, "hostname"))
		require.NotEmpty(t, p.Status.HostIP)
		require.Equal(t, p.Status.HostIP, p.Status.PodIP)
		require.Contains(t, a.output(p, "addresses"), p.Status.HostIP+"\n")
		own, err := os.ReadFile("/etc/hosts")
		require.NoError(t, err)
		require.Equal(t, "# Kubernetes-managed hosts file (host network).\n"+string(own), a.output(p, "hosts"))
	}}
}

// logsAreLinked checks that every container's log has a link where log collectors look for it.
func (a *agent) logsAreLinked() {
	a.t.Helper()
	pods, err := a.list()
	require.NoError(a.t, err)
	links := entries("/var/log/containers")
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			link := p.Name + "_default_" + s.Name + "-" + strings.TrimPrefix(s.ContainerID, "containerd://") + ".log"
			require.True(a.t, slices.Contains(links, link), "%s is missing in %v", link, links)
			target, err := os.Readlink(filepath.Join("/var/log/containers", link))
			require.NoError(a.t, err)
			require.Equal(a.t, "/var/log/pods/default_"+p.Name+"_"+string(p.UID)+"/"+s.Name+"/0.log", target)
			require.FileExists(a.t, target)
		}
	}
}
