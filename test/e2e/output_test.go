//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// logLine is a line of a log file as CRI has it: time, stream, full or partial, text.
var logLine = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\S+) (stdout|stderr) ([FP]) (.*)\n$`)

// output is what the last run of a container has said so far, standard error included, without what CRI adds to the lines.
func (a *agent) output(p *v1.Pod, container string) string {
	a.t.Helper()
	s := status(p, container)
	require.NotNil(a.t, s, "%s has no container %s", p.Name, container)
	b, err := os.ReadFile(fmt.Sprintf("/var/log/pods/%s_%s_%s/%s/%d.log", p.Namespace, p.Name, p.UID, container, s.RestartCount))
	require.NoError(a.t, err)
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		m := logLine.FindStringSubmatch(line)
		require.NotNil(a.t, m, "not in CRI's format: %q", line)
		out.WriteString(m[4])
		if m[3] == "F" {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// missing is an error when the text does not contain a part.
func missing(text, part string) error {
	if strings.Contains(text, part) {
		return nil
	}
	return fmt.Errorf("%q is missing in:\n%s", part, text)
}
