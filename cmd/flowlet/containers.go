package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flowlet/flowlet/internal/pod"
)

// containersText is a line for each container in the order of their starts, and
// below it the last words of those that failed.
func containersText(now time.Time, p *v1.Pod) string {
	st := &p.Status
	all := make([]v1.ContainerStatus, 0, len(st.InitContainerStatuses)+len(st.ContainerStatuses)+len(st.EphemeralContainerStatuses))
	all = append(append(append(all, st.InitContainerStatuses...), st.ContainerStatuses...), st.EphemeralContainerStatuses...)
	if len(all) == 0 {
		return ""
	}
	kinds := kindsOf(&p.Spec)
	var words strings.Builder
	text := table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "CONTAINER\tKIND\tSTATE\tREADY\tRESTARTS\tLAST STATE\tIMAGE")
		for i := range all {
			c := &all[i]
			fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%d\t%s\t%s\n",
				c.Name, or(kinds[c.Name], "app"), state(now, c.State), c.Ready, c.RestartCount, state(now, c.LastTerminationState), c.Image)
			words.WriteString(lastWords(c))
		}
	})
	return "\n" + text + words.String()
}

// kindsOf names the kinds of all containers but the regular ones.
func kindsOf(spec *v1.PodSpec) map[string]string {
	kinds := map[string]string{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		kinds[c.Name] = "init"
		if pod.Sidecar(c) {
			kinds[c.Name] = "sidecar"
		}
	}
	for i := range spec.EphemeralContainers {
		kinds[spec.EphemeralContainers[i].Name] = "ephemeral"
	}
	return kinds
}

// lastWords is what a container said as it ended, the newest end that said
// something; nothing when it said nothing. All lines but the first are indented.
func lastWords(c *v1.ContainerStatus) string {
	for _, end := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if end == nil {
			continue
		}
		said := strings.TrimSpace(end.Message)
		if said == "" {
			return "" // words of an older end would explain the wrong one
		}
		return fmt.Sprintf("\nLast words of %s:\n  %s\n", c.Name, strings.ReplaceAll(printable(said), "\n", "\n  "))
	}
	return ""
}

// printable replaces what could steer a terminal: the words are the container's.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

func state(now time.Time, s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "Running"
	case s.Terminated != nil:
		return ended(now, s.Terminated)
	case s.Waiting != nil:
		return or(s.Waiting.Reason, "Waiting")
	}
	return "-"
}

// ended says how and when a container ended.
func ended(now time.Time, t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("%s (exit %d", or(t.Reason, "Terminated"), t.ExitCode)
	if !t.FinishedAt.IsZero() {
		text += ", " + duration.HumanDuration(now.Sub(t.FinishedAt.Time)) + " ago"
	}
	return text + ")"
}
