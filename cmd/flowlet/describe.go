package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server"
)

func describe(now time.Time, d server.Detail) string {
	p := d.Pod
	var b strings.Builder
	b.WriteString(table(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Name:\t%s\nNamespace:\t%s\nUID:\t%s\n", p.Name, p.Namespace, p.UID)
		fmt.Fprintf(w, "Status:\t%s\nLife:\t%s\nIP:\t%s\n", server.Word(p), p.Annotations[server.AnnotationPhase], or(p.Status.PodIP, "<none>"))
		if at := p.Status.StartTime; at != nil {
			fmt.Fprintf(w, "Started:\t%s (%s ago)\n", at.UTC().Format(time.RFC3339), duration.HumanDuration(now.Sub(at.Time)))
		}
		if at := p.DeletionTimestamp; at != nil {
			fmt.Fprintf(w, "Ends by:\t%s\n", at.UTC().Format(time.RFC3339))
		}
		for _, f := range []struct{ label, value string }{
			{"Source", p.Annotations[pod.AnnotationSource]},
			{"Manifest", p.Annotations[server.AnnotationManifest]},
			{"Message", p.Status.Message},
			{"No effect", p.Annotations[server.AnnotationUnsupported]},
			{"Left alone", p.Annotations[server.AnnotationLeftAlone]},
		} {
			if f.value != "" {
				fmt.Fprintf(w, "%s:\t%s\n", f.label, f.value)
			}
		}
	}))
	b.WriteString(containersText(now, p))
	if len(d.Why.Blocking) > 0 {
		b.WriteString("\n" + d.Why.Text())
	}
	b.WriteString("\n" + events(now, d))
	return b.String()
}

func events(now time.Time, d server.Detail) string {
	if len(d.Events) == 0 {
		return "No events.\n"
	}
	return table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "AGE\tTYPE\tREASON\tOBJECT\tMESSAGE")
		for _, e := range d.Events {
			at := duration.HumanDuration(now.Sub(e.Last))
			if e.Count > 1 {
				at += fmt.Sprintf(" (x%d over %s)", e.Count, duration.HumanDuration(now.Sub(e.First)))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", at, e.Type, e.Reason, or(e.FieldPath, "pod"), e.Message)
		}
	})
}

func nodeText(now time.Time, n server.Node) string {
	var b strings.Builder
	b.WriteString(table(func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Node:\t%s\nAgent:\tflowlet %s, running for %s\n", n.Name, n.Version, duration.HumanDuration(now.Sub(n.Started)))
		fmt.Fprintf(w, "Pods:\t%d\n", n.Pods)
		r := n.Runtime
		fmt.Fprintf(w, "Runtime:\t%s\n", runtimeText(r))
		fmt.Fprintf(w, "Runtime ready:\t%t\nNetwork ready:\t%t\n", r.Ready, r.NetworkReady)
		if r.Message != "" {
			fmt.Fprintf(w, "Runtime says:\t%s (for %s)\n", r.Message, duration.HumanDuration(now.Sub(r.Since)))
		}
		fmt.Fprintf(w, "Runtime events:\t%s\n", eventsText(now, r))
		if !r.Listed.IsZero() {
			fmt.Fprintf(w, "Last list:\t%s ago\n", duration.HumanDuration(now.Sub(r.Listed)))
		}
		roomText(w, now, n.Room)
	}))
	b.WriteString("\n")
	for _, c := range n.Checks {
		if c.Error == "" {
			fmt.Fprintf(&b, "ok      %s\n", c.Name)
		} else {
			fmt.Fprintf(&b, "FAILED  %s: %s\n", c.Name, c.Error)
		}
	}
	b.WriteString(choresText(now, n.Chores))
	if len(n.Left) > 0 {
		fmt.Fprintf(&b, "\nLeft alone, their source is not configured here: %s\n", strings.Join(n.Left, ", "))
	}
	return b.String()
}

// roomText says what is left, and what the node is short of.
func roomText(w io.Writer, now time.Time, r server.Room) {
	for _, a := range r.Amounts {
		left, of := fmt.Sprint(a.Available), fmt.Sprint(a.Capacity)
		if !strings.Contains(a.Signal, "inodes") && !strings.HasPrefix(a.Signal, "pid") {
			left, of = fmt.Sprintf("%.1fGi", float64(a.Available)/(1<<30)), fmt.Sprintf("%.1fGi", float64(a.Capacity)/(1<<30))
		}
		fmt.Fprintf(w, "%s:\t%s of %s (%d%%)\n", a.Signal, left, of, 100*a.Available/max(1, a.Capacity))
	}
	for _, p := range r.Pressures {
		fmt.Fprintf(w, "%s:\tfor %s\n", p.Type, duration.HumanDuration(now.Sub(p.Since)))
	}
	if r.Did != "" {
		fmt.Fprintf(w, "Eviction:\t%s\n", r.Did)
	}
}

// choresText is a line for each chore, and its errors below it.
func choresText(now time.Time, chores []server.Chore) string {
	if len(chores) == 0 {
		return ""
	}
	var errs strings.Builder
	text := table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "\nCHORE\tASKED\tBY\tLAST END\tDOING")
		for _, c := range chores {
			ended := "-"
			if !c.Ended.IsZero() {
				ended = duration.HumanDuration(now.Sub(c.Ended)) + " ago"
			}
			fmt.Fprintf(w, "%s\t%s ago\t%s\t%s\t%s\n", c.Name, duration.HumanDuration(now.Sub(c.Asked)), c.Why, ended, doing(c.Doing))
			for _, e := range c.Errors {
				fmt.Fprintf(&errs, "%s: %s\n", c.Name, e)
			}
		}
	})
	return text + errs.String()
}

func doing(stages []string) string {
	const most = 3
	switch n := len(stages); {
	case n == 0:
		return "-"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(stages[:most], ", "), n-most)
	}
	return strings.Join(stages, ", ")
}

// runtimeText names the runtime, once it has said what it is.
func runtimeText(r server.RuntimeHealth) string {
	if r.Version == "" {
		return "at " + r.Endpoint + ", has not answered yet"
	}
	return r.Name + " " + r.Version + " at " + r.Endpoint
}

func eventsText(now time.Time, r server.RuntimeHealth) string {
	since := ""
	if !r.EventsSince.IsZero() {
		since = " for " + duration.HumanDuration(now.Sub(r.EventsSince))
	}
	switch {
	case r.Events:
		return "on" + since
	case r.EventsOff == "":
		return "not yet known"
	}
	return "off" + since + ": " + r.EventsOff
}
