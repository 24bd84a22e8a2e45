package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/server"
)

// namedPods is how many pods a note names; the others are counted.
const namedPods = 4

// notes are what is odd about pods and their manifests, one line each.
func notes(pods v1.PodList, files []server.File) string {
	var b strings.Builder
	for _, g := range grouped(pods, server.AnnotationUnsupported) {
		fmt.Fprintf(&b, "Warning: this build does not act on %s of %s\n", g.value, g.names())
	}
	for _, g := range grouped(pods, server.AnnotationLeftAlone) {
		fmt.Fprintf(&b, "Left alone: %s: %s\n", g.names(), g.value)
	}
	for _, f := range files {
		b.WriteString(fileNotes(f))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// group is the pods that have the same value of an annotation.
type group struct {
	value string
	pods  []string
}

func (g group) names() string {
	if n := len(g.pods); n > namedPods {
		return fmt.Sprintf("%s and %d more pods", strings.Join(g.pods[:namedPods], ", "), n-namedPods)
	}
	return strings.Join(g.pods, ", ")
}

// grouped returns the groups in the order of their first pod.
func grouped(pods v1.PodList, annotation string) []group {
	var out []group
	for i := range pods.Items {
		p := &pods.Items[i]
		value := p.Annotations[annotation]
		if value == "" {
			continue
		}
		at := slices.IndexFunc(out, func(g group) bool { return g.value == value })
		if at < 0 {
			at, out = len(out), append(out, group{value: value})
		}
		out[at].pods = append(out[at].pods, p.Namespace+"/"+p.Name)
	}
	return out
}

func fileNotes(f server.File) string {
	var out string
	for _, w := range f.Warnings {
		out += fmt.Sprintf("Warning: %s\n", w)
	}
	switch {
	case f.Error != "" && f.Keeps:
		out += fmt.Sprintf("Error: %s (pod %s goes on as it was)\n", strings.TrimSpace(f.Error), f.Pod)
	case f.Error != "":
		out += fmt.Sprintf("Error: %s\n", strings.TrimSpace(f.Error))
	case f.Ignored != "":
		out += fmt.Sprintf("Ignored: %s: %s\n", f.Path, f.Ignored)
	}
	return out
}
