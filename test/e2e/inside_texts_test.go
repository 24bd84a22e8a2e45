//go:build e2e

package e2e_test

import (
	"os"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// texts are what a process is told: its environment, its arguments, its streams.
func texts() []view {
	return []view{environment(), arguments(), fromImage(), streams(), lastWords()}
}

func environment() view {
	return view{name: "environment", shows: "environment from values, fields and resources with divisors; expansion", spec: `
containers:
- name: main
  image: IMAGE
  args: [report]
  resources: {limits: {cpu: 250m, memory: 64Mi}, requests: {cpu: 100m}}
  env:
  - {name: A, value: one}
  - {name: B, value: $(A) $$(A) $(NONE) $(LATE)}
  - {name: C, value: "$$$$(A) $(B) 100$"}
  - {name: LATE, value: late}
  - {name: TWICE, value: first}
  - {name: TWICE, value: second}
  - {name: EMPTY, value: ""}
  - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
  - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
  - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
  - {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
  - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  - {name: IPS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
  - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
  - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
  - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
  - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
  - {name: REQUEST, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
  - {name: OTHER_CPUS, valueFrom: {resourceFieldRef: {containerName: other, resource: limits.cpu}}}
- {name: other, image: IMAGE, args: [exit, "0"]}
`, check: func(s *seen) {
		p, got := s.pod, s.report("main").Env
		for name, want := range map[string]string{
			"A": "one", "B": "one $(A) $(NONE) $(LATE)", "C": "$$(A) one $(A) $(NONE) $(LATE) 100$", "TWICE": "second", "EMPTY": "",
			"POD": "environment-e2e", "NS": "default", "UID": string(p.UID), "APP": "environment", "NODE": "e2e", "ACCOUNT": "",
			"IP": p.Status.PodIP, "IPS": p.Status.PodIP, "HOST_IP": p.Status.HostIP,
			"CPU": "250", "CPUS": "1", "MEMORY": "64", "REQUEST": "100", "PATH": "/bin", "HOSTNAME": "environment-e2e",
		} {
			value, is := got[name]
			require.True(s, is, "%s is missing", name)
			require.Equal(s, want, value, name)
		}
		require.NotEmpty(s, p.Status.PodIP)
		cpus, err := strconv.Atoi(got["OTHER_CPUS"])
		require.NoError(s, err)
		require.Positive(s, cpus, "without a limit, what the node has")
	}}
}

func arguments() view {
	return view{name: "arguments", shows: "command and arguments, alone and together; working directory", spec: `
containers:
- {name: args, image: IMAGE, args: [report, /x/$(A), /x/$$(A), $(NONE)], env: [{name: A, value: one}]}
- {name: command, image: IMAGE, command: [/bin/report, $(A)], env: [{name: A, value: two}]}
- {name: both, image: IMAGE, command: [/bin/demo], args: [report, three], workingDir: /etc}
- {name: made, image: IMAGE, args: [report], workingDir: /not/there/yet}
`, check: func(s *seen) {
		require.Equal(s, []string{"/bin/demo", "report", "/x/one", "/x/$(A)", "$(NONE)"}, s.report("args").Args)
		require.Equal(s, "/", s.report("args").Dir)
		require.Equal(s, []string{"/bin/report", "two"}, s.report("command").Args)
		both := s.report("both")
		require.Equal(s, []string{"/bin/demo", "report", "three"}, both.Args)
		require.Equal(s, "/etc", both.Dir)
		require.Equal(s, "/not/there/yet", s.report("made").Dir)
	}}
}

// fromImage is what comes from the image where the spec says nothing.
func fromImage() view {
	return view{name: "image", shows: "defaults of the image: entrypoint and command, variables, user, working directory", spec: `
containers:
- {name: all, image: NAMED}
- {name: args, image: NAMED, args: [report, /args]}
- {name: command, image: NAMED, command: [/bin/report]}
- {name: env, image: NAMED, env: [{name: FROM, value: spec}], workingDir: /tmp}
`, check: func(s *seen) {
		all := s.report("all")
		require.Equal(s, []string{"/bin/demo", "report", "/image"}, all.Args)
		require.Equal(s, "image", all.Env["FROM"])
		require.Equal(s, "/data", all.Dir)
		require.Equal(s, "65534 65534 65534 65534", all.Status["Uid"])
		require.Equal(s, []string{"/bin/demo", "report", "/args"}, s.report("args").Args)
		require.Equal(s, []string{"/bin/report"}, s.report("command").Args, "the image's arguments go with its entrypoint only")
		require.Equal(s, "spec", s.report("env").Env["FROM"])
		require.Equal(s, "/tmp", s.report("env").Dir)
	}}
}

func streams() view {
	return view{name: "streams", shows: "standard input, terminals", spec: `
containers:
- {name: plain, image: IMAGE, args: [report]}
- {name: input, image: IMAGE, args: [report], stdin: true}
- {name: terminal, image: IMAGE, args: [report], stdin: true, tty: true}
`, check: func(s *seen) {
		plain, input, terminal := s.report("plain"), s.report("input"), s.report("terminal")
		require.Equal(s, []bool{false, false, false}, plain.Terminals)
		require.Equal(s, "/dev/null", plain.Input)
		require.Equal(s, []bool{false, false, false}, input.Terminals)
		require.True(s, strings.HasPrefix(input.Input, "pipe:"), input.Input)
		require.Equal(s, []bool{true, true, true}, terminal.Terminals)
		require.Equal(s, "xterm", terminal.Env["TERM"])
	}}
}

func lastWords() view {
	return view{name: "words", shows: "termination messages, from file and from log, cut to 4096 bytes", spec: `
containers:
- {name: usual, image: IMAGE, args: [write, /dev/termination-log, bye]}
- {name: other, image: IMAGE, args: [write, /tmp/words, so long], terminationMessagePath: /tmp/words}
- {name: logs, image: IMAGE, args: [get, "http://127.0.0.1:1/"], terminationMessagePolicy: FallbackToLogsOnError}
- {name: long, image: IMAGE, args: [fill, -bytes, "10000", /dev/termination-log]}
- {name: look, image: IMAGE, args: [report, /dev/termination-log], securityContext: {runAsUser: 1000}}
- {name: none, image: IMAGE, args: [exit, "5"]}
`, check: func(s *seen) {
		require.Equal(s, v1.PodFailed, s.pod.Status.Phase)
		require.Equal(s, "bye\n", s.terminated("usual").Message)
		require.Equal(s, "so long\n", s.terminated("other").Message)
		require.Contains(s, s.terminated("logs").Message, "connection refused")
		require.LessOrEqual(s, len(s.terminated("long").Message), 12<<10/6, "the pod's containers share 12 KiB")
		require.NotEmpty(s, s.terminated("long").Message)
		file := s.report("look").Paths["/dev/termination-log"]
		require.Equal(s, "-rw-rw-rw-", file.Mode)
		require.True(s, file.Writable, "for everybody")
		none := s.terminated("none")
		require.Equal(s, int32(5), none.ExitCode)
		require.Equal(s, "Error", none.Reason)
		require.Empty(s, none.Message)
	}}
}

// ownFile is a file of this machine as the test sees it, which is in the same namespaces as the runtime.
func (s *seen) ownFile(path string) string {
	s.Helper()
	b, err := os.ReadFile(path)
	require.NoError(s, err)
	return string(b)
}
