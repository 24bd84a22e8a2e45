package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/stages/container"
)

// onDisk has every volume in one directory.
type onDisk struct {
	fakeVolumes
	dir string
}

func (v onDisk) VolumePath(*v1.Pod, string) (string, error) { return v.dir, nil }

func TestVariablesFromAFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub", "vars"), strings.Join([]string{
		"# comment", "", "  A='one'", "\tB='two # words'  # said", "EMPTY=''", "BARE= 'shell'",
		"LINES='first", "  second = \"2\"", "'", "A='again'", "$(X)='literal $(A)'",
	}, "\n"))
	write(t, filepath.Join(t.TempDir(), "x"), "")
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "out")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	write(t, filepath.Join(dir, "large"), strings.Repeat("#", 1<<20+1))
	for name, text := range map[string]string{
		"noequals": "A", "space": "A ='x'", "noname": "='x'", "noquote": "A=x", "open": "B='1'\nA='x\ny", "after": "A='x'y", "binary": "A='x\x00y'",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	for name, tc := range map[string]struct {
		path, key string
		optional  bool
		want      string // "-": the variable is not set
		err       string
	}{
		"first wins":             {"sub/vars", "A", false, "one", ""},
		"comment after a value":  {"sub/vars", "B", false, "two # words", ""},
		"several lines":          {"sub/vars", "LINES", false, "first\n  second = \"2\"\n", ""},
		"nothing is expanded":    {"sub/vars", "$(X)", false, "literal $(A)", ""},
		"empty counts as absent": {"sub/vars", "EMPTY", false, "", `key "EMPTY" not found in file "sub/vars"`},
		"as a shell takes it":    {"sub/vars", "BARE", false, "", `key "BARE" not found`},
		"absent":                 {"sub/vars", "NO", false, "", `key "NO" not found`},
		"absent, optional":       {"sub/vars", "NO", true, "-", ""},
		"no file":                {"none", "A", false, "", "none: no such file"},
		"no file, optional":      {"none", "A", true, "-", ""},
		"a link out of it":       {"out/passwd", "A", true, "", "escapes"},
		"a pipe":                 {"pipe", "A", false, "", "it is no regular file"},
		"too large":              {"large", "A", false, "", "larger than"},
		"a NUL byte":             {"binary", "A", true, "", "the value of A has a NUL byte in it"},
		"no =":                   {"noequals", "A", false, "", "line 1: missing '='"},
		"space before =":         {"space", "A", false, "", "line 1: there must be a name right before '='"},
		"no name":                {"noname", "A", false, "", "line 1: there must be a name right before '='"},
		"no quote":               {"noquote", "A", false, "", "line 1: a value must be in single quotes"},
		"open quote":             {"open", "A", false, "", "line 2: the quote is never closed"},
		"after the quote":        {"after", "A", false, "", "line 1: there is something after the closing quote"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(s *container.Settings) { s.EnvFiles = true })
			r.Config.Volumes = onDisk{dir: dir}
			st := start(func(_ *v1.Pod, app *v1.Container) {
				app.Env = []v1.EnvVar{{Name: "X", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{
					VolumeName: "v", Path: tc.path, Key: tc.key, Optional: ptr.To(tc.optional),
				}}}}
			})
			if tc.err != "" {
				require.ErrorContains(t, refused(t, r, st), tc.err)
				return
			}
			got := request(t, r, st).GetEnvs()
			if tc.want == "-" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, tc.want, string(got[0].GetValue()))
		})
	}
}
