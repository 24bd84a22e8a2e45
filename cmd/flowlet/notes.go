package main

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/server"
)

// notes are what is odd about pods and their manifests, one line each.
func notes(pods v1.PodList, files []server.File) string {
	var b strings.Builder
	for i := range pods.Items {
		b.WriteString(podNotes(&pods.Items[i]))
	}
	for _, f := range files {
		b.WriteString(fileNotes(f))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

func podNotes(p *v1.Pod) string {
	var out string
	if fields := p.Annotations[server.AnnotationUnsupported]; fields != "" {
		out += fmt.Sprintf("Warning: pod %s/%s: this build does not act on %s\n", p.Namespace, p.Name, fields)
	}
	if why := p.Annotations[server.AnnotationLeftAlone]; why != "" {
		out += fmt.Sprintf("Left alone: pod %s/%s: %s\n", p.Namespace, p.Name, why)
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
