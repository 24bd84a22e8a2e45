//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	b, err := os.ReadFile(logOf(p, container))
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

// logOf is the log file of the last run of a container.
func logOf(p *v1.Pod, container string) string {
	return fmt.Sprintf("/var/log/pods/%s_%s_%s/%s/%d.log", p.Namespace, p.Name, p.UID, container, status(p, container).RestartCount)
}

// missing is an error when the text does not contain a part.
func missing(text, part string) error {
	if strings.Contains(text, part) {
		return nil
	}
	return fmt.Errorf("%q is missing in:\n%s", part, text)
}

// logsAreLinked checks that every container's log has a link where log collectors look for it.
func (a *agent) logsAreLinked() {
	a.t.Helper()
	pods, err := a.list()
	require.NoError(a.t, err)
	links := entries("/var/log/containers")
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			if end := s.State.Terminated; p.DeletionTimestamp != nil || s.State.Running == nil && (end == nil || end.Reason == "StartError") {
				continue // it has not run, or is being removed
			}
			link := p.Name + "_default_" + s.Name + "-" + strings.TrimPrefix(s.ContainerID, "containerd://") + ".log"
			require.True(a.t, slices.Contains(links, link), "%s is missing in %v", link, links)
			target, err := os.Readlink(filepath.Join("/var/log/containers", link))
			require.NoError(a.t, err)
			require.Equal(a.t, "/var/log/pods/default_"+p.Name+"_"+string(p.UID)+"/"+s.Name+"/0.log", target)
			require.FileExists(a.t, target)
		}
	}
}
