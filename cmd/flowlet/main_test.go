package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArguments(t *testing.T) {
	tests := map[string]struct{ in, want []string }{
		"kubelet's flags":      {[]string{"/usr/bin/flowlet", "--config", "x"}, []string{"run", "--config", "x"}},
		"called as kubelet":    {[]string{"/usr/bin/kubelet"}, []string{"run"}},
		"kubelet with flags":   {[]string{"kubelet", "--v=2"}, []string{"run", "--v=2"}},
		"kubelet's version":    {[]string{"kubelet", "--version"}, []string{"run", "--version"}},
		"version as a flag":    {[]string{"flowlet", "--version"}, []string{"run", "--version"}},
		"help as a flag":       {[]string{"flowlet", "--help"}, []string{"--help"}},
		"help as a short flag": {[]string{"flowlet", "-h"}, []string{"-h"}},
		"a command":            {[]string{"flowlet", "get", "pods"}, []string{"get", "pods"}},
		"nothing":              {[]string{"flowlet"}, []string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, arguments(tt.in)) })
	}
}

// flowlet runs a command line and returns what it prints and its error.
func flowlet(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, arguments([]string{"kubelet", "--version"})} {
		out, err := flowlet(t, args...)
		require.NoError(t, err)
		require.Regexp(t, `^flowlet v\S+ \(Kubernetes v1\.37\.2\)\n$`, out)
	}
}

func TestWrongCommandLines(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no such command":          {[]string{"frobnicate"}, `unknown command "frobnicate" for "flowlet"`},
		"no such thing to get":     {[]string{"get", "nodes"}, `unknown command "nodes" for "flowlet get"`},
		"and with a flag":          {[]string{"get", "nodes", "--root-dir", "/nope"}, `unknown command "nodes" for "flowlet get": there are pods, pod, node and policy`},
		"an unknown flag of get":   {[]string{"get", "--nope"}, "unknown flag: --nope"},
		"get pod without a pod":    {[]string{"get", "pod"}, "flowlet get pod needs one POD: NAMESPACE/NAME"},
		"why without a pod":        {[]string{"why"}, "flowlet why needs one POD"},
		"why of two pods":          {[]string{"why", "a", "b"}, "2 arguments were given"},
		"trace of two kinds":       {[]string{"trace", "a", "--stop", "--start"}, "[start stop]"},
		"dag of nothing":           {[]string{"dag"}, "dag takes either a POD or -f MANIFEST"},
		"dag of too much":          {[]string{"dag", "a", "-f", "b"}, "dag takes either a POD or -f MANIFEST"},
		"dag of a missing file":    {[]string{"dag", "-f", "/nope.yaml"}, "reading the manifest: open /nope.yaml: "},
		"plan of nothing":          {[]string{"plan"}, "plan needs -f MANIFEST, or --remove MANIFEST"},
		"plan of a missing file":   {[]string{"plan", "-f", "/nope.yaml"}, "reading the manifest: open /nope.yaml: "},
		"plan of both":             {[]string{"plan", "-f", "a", "--remove", "b"}, "[filename remove]"},
		"sim without a socket":     {[]string{"sim"}, "--listen: use unix:// and an absolute path"},
		"sim on a relative path":   {[]string{"sim", "--listen", "unix://sim.sock"}, "--listen: use unix:// and an absolute path"},
		"sim on TCP":               {[]string{"sim", "--listen", "tcp://:1"}, "--listen: use unix:// and an absolute path"},
		"no agent":                 {[]string{"get", "pods", "--root-dir", "/nope"}, "no agent answers on /nope/flowlet.sock: is `flowlet run` running, with the same --root-dir?"},
		"a missing config file":    {[]string{"run", "--config", "/nope.yaml"}, "reading the configuration file: open /nope.yaml: "},
		"an unknown flag of run":   {[]string{"run", "--nope"}, "unknown flag: --nope"},
		"run with a stray word":    {[]string{"run", "x"}, `unknown command "x" for "flowlet run"`},
		"a flag with a bad value":  {[]string{"run", "--max-pods", "many"}, `invalid argument "many" for "--max-pods" flag`},
		"a value out of its range": {[]string{"run", "--max-pods", "-3"}, "--max-pods: maxPods: Invalid value: -3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := flowlet(t, tt.args...)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestDagOfAManifestSaysWhatIsOddAboutIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yaml")
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: app, image: x, imagePulPolicy: Never}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := flowlet(t, "dag", "-f", file)
	require.NoError(t, err)
	require.Contains(t, out, "Note: "+file+`:6: unknown field "spec.containers[0].imagePulPolicy", it is ignored: is imagePullPolicy meant?`)
	require.Contains(t, out, "container[app]")
}

func TestHelpNamesEveryCommand(t *testing.T) {
	out, err := flowlet(t)
	require.NoError(t, err)
	for _, c := range []string{"run", "get", "why", "trace", "journal", "dag", "plan", "logs", "exec", "attach", "port-forward", "sim", "bench", "version"} {
		require.Contains(t, out, "\n  "+c+" ")
	}
}
