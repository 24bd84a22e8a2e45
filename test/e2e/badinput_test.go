//go:build e2e

package e2e_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// untilSays waits until `flowlet get pods` shows all these texts.
func (a *agent) untilSays(texts ...string) {
	a.t.Helper()
	a.until("get pods says what is wrong", func() error {
		out, _ := a.run("get", "pods")
		for _, text := range texts {
			if err := missing(out, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// A manifest that cannot be read is named with file, line and field, and is nobody else's trouble.
func TestBrokenManifestBesideGoodOnes(t *testing.T) {
	sawOn(t, node, "bad input: manifests that cannot be read, beside good ones")
	a := startAgent(t, node, "good.yaml", sleeper("good"),
		"broken.yaml", podOf("broken", "containers:\n- name: main\n  image: IMAGE\n  args: [sleep]\n  resources: {limits: {memory: much}}"),
		"garbage.yaml", "apiVersion: v1\nkind: Pod\n  metadata: [\n",
		"typo.yaml", podOf("typo", "contaners: []\ncontainers: [{name: main, image: IMAGE, args: [sleep]}]"),
		"notes.txt", "not a manifest",
	)
	a.untilPod("good", "is ready", isReady)
	a.untilPod("typo", "is ready", isReady)
	a.untilSays(
		filepath.Join(a.manifests, "broken.yaml")+":11: spec.containers[0].resources.limits.memory: ",
		filepath.Join(a.manifests, "garbage.yaml")+":",
		"Warning: "+filepath.Join(a.manifests, "typo.yaml")+`:7: unknown field "spec.contaners"`,
		"Ignored: "+filepath.Join(a.manifests, "notes.txt"),
	)
	pods, err := a.list()
	require.NoError(t, err)
	require.Len(t, pods, 2)
}

// An edit that breaks a manifest leaves its last good pod alone.
func TestEditToABrokenManifestKeepsThePod(t *testing.T) {
	sawOn(t, node, "bad input: an edit that cannot be read keeps the pod")
	a := startAgent(t, node, "web.yaml", sleeper("web"))
	before := a.untilPod("web", "is ready", isReady)
	a.write("web.yaml", podOf("web", "containers: [{name: main}]"))
	a.untilSays(filepath.Join(a.manifests, "web.yaml")+":", "spec.containers[0].image")
	a.write("other.yaml", sleeper("other")) // when it runs, the broken one has long been dealt with
	a.untilPod("other", "is ready", isReady)
	after := a.untilPod("web", "is ready", isReady)
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Status.ContainerStatuses, after.Status.ContainerStatuses)
}

// Two manifests of one pod: the first keeps it, the second is named, and takes over when the first one goes.
func TestTwoManifestsOfOnePod(t *testing.T) {
	sawOn(t, node, "bad input: two manifests of one pod")
	a := startAgent(t, node, "a.yaml", sleeper("twin"))
	first := a.untilPod("twin", "is ready", isReady)
	a.write("b.yaml", sleeper("twin"))
	a.untilSays(filepath.Join(a.manifests, "b.yaml"), filepath.Join(a.manifests, "a.yaml"))
	require.Len(t, a.sandboxes(), 1)
	a.remove("a.yaml")
	a.untilPod("twin", "is another pod", func(p *v1.Pod) bool { return isReady(p) && p.UID != first.UID })
	require.Len(t, a.sandboxes(), 1)
}

// A configuration that cannot be used ends the program with exit code 1 and the field's path, before anything is touched.
func TestBadConfiguration(t *testing.T) {
	sawOn(t, node, "bad input: a configuration, a policy or a flag that cannot be used")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("apiVersion: flowlet.dev/v1alpha1\nkind: Policy\nclasses:\n  sandbox: {slots: many}\n"), 0o644))
	for name, c := range map[string]struct {
		config map[string]any
		flags  []string
		want   string
	}{
		"a value":     {config: map[string]any{"maxPods": -1}, want: "maxPods"},
		"a type":      {config: map[string]any{"fileCheckFrequency": "soon"}, want: "fileCheckFrequency"},
		"a flag":      {flags: []string{"--no-such-flag"}, want: "--no-such-flag"},
		"a policy":    {flags: []string{"--policy", policy}, want: policy},
		"cgroup v1":   {config: map[string]any{"failCgroupV1": true}, want: "failCgroupV1"},
		"no such API": {config: map[string]any{"apiVersion": "kubelet.config.k8s.io/v9"}, want: "v9"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, node)
			a.write("pod.yaml", sleeper("pod"))
			bad := *a
			bad.flags, bad.config = c.flags, maps.Clone(a.config)
			maps.Copy(bad.config, c.config)
			out, err := bad.command(bad.arguments()...).CombinedOutput()
			var ended *exec.ExitError
			require.ErrorAs(t, err, &ended, "%s", out)
			require.Equal(t, 1, ended.ExitCode(), "%s", out)
			require.Contains(t, string(out), c.want)
			require.Empty(t, a.sandboxes())
			require.Empty(t, entries(filepath.Join(a.root, "pods")))
		})
	}
}

// One root directory has one agent: a second one names the first.
func TestSecondAgentOnTheSameRoot(t *testing.T) {
	sawOn(t, node, "one root directory has one agent")
	a := startAgent(t, node, "web.yaml", sleeper("web"))
	before := a.untilPod("web", "is ready", isReady)
	out, err := a.command(a.arguments()...).CombinedOutput()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, 1, ended.ExitCode())
	require.Contains(t, string(out), a.root)
	require.Regexp(t, `\b`+strconv.Itoa(a.proc.cmd.Process.Pid)+`\b`, string(out))
	after := a.untilPod("web", "is ready", isReady)
	require.Equal(t, before.Status, after.Status)
}
