package app

import (
	"fmt"
	"strings"

	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages"
)

// folded notes an event in the journal of its pod, or what the runtime says of
// itself in the log.
func (a *Agent) folded(ev stages.Event) {
	switch r, ok := ev.Change.(pod.RuntimeStatus); {
	case ok:
		a.runtimeNews(r)
		return
	case ev.Topic != "":
		return
	}
	if text := words(ev.Change); text != "" {
		a.Journal.Event(ev.Key, journal.Event{At: ev.Seen, Source: ev.Source, Change: text, Cause: ev.Cause})
	}
}

// runtimeNews logs each change of what the runtime says of itself. It is
// called one at a time.
func (a *Agent) runtimeNews(r pod.RuntimeStatus) {
	was := a.runtime
	a.runtime = r
	switch {
	case was.Equal(r):
	case r.Ready && r.NetworkReady:
		a.log.Info("the container runtime is ready")
	case r.Ready:
		a.log.Warn("the container runtime's network is not ready: pods without host network wait", "reason", r.Reason, "message", r.Message)
	default:
		a.log.Warn("the container runtime is not ready; it is tried again, and running containers go on", "reason", r.Reason, "message", r.Message)
	}
}

// words says in a few words what was learnt. Nothing of what a user or a
// container wrote is in them but names: it may be secret.
func words(c pod.Change) string {
	switch c := c.(type) {
	case pod.SpecSet:
		return fmt.Sprintf("wanted, as in %s (revision %x)", or(c.Spec.Path, "the API"), c.Spec.Sum)
	case pod.SpecGone:
		return "no longer wanted"
	case pod.Claimed:
		return "nobody wants it"
	case pod.Restored:
		return "known from an earlier run of the agent"
	case pod.Observed:
		return observedWords(c)
	case pod.Due:
		return c.Why
	case pod.StageEnded:
		return factsWords(c.Facts)
	case pod.Facts:
		return factsWords(c)
	}
	return writtenWords(c)
}

func writtenWords(c pod.Change) string {
	switch c := c.(type) {
	case pod.Wrote:
		if c.Unsure {
			return "unsure what became of " + c.Object
		}
	case pod.SandboxStopped:
		return "sandbox " + short(c.ID) + " stopped"
	case pod.SandboxRemoved:
		return "sandbox " + short(c.ID) + " removed"
	case pod.ContainerRemoved:
		return "container " + short(c.ID) + " removed"
	case pod.ImageFound:
		if c.Image.ID == "" {
			return "image " + c.Ref + " is not here"
		}
		return "image " + c.Ref + " is here"
	case pod.ImageGone:
		return "image " + c.Ref + " went away"
	case pod.Admitted:
		return "admitted"
	case pod.Rejected:
		return "rejected: " + c.Reason
	case pod.Settled:
		return "taken down"
	case pod.Gone:
		return "nothing is left"
	}
	return ""
}

func factsWords(facts pod.Facts) string {
	var parts []string
	for _, f := range facts {
		if text := words(f); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

func observedWords(o pod.Observed) string {
	var parts []string
	for _, s := range o.Sandboxes {
		parts = append(parts, "sandbox "+short(s.ID)+" "+sandboxWord(s))
	}
	for i := range o.Containers {
		c := &o.Containers[i]
		parts = append(parts, fmt.Sprintf("%s/%d %s %s", c.Name, c.Attempt, short(c.ID), containerWord(c)))
	}
	if len(parts) == 0 && !o.Partial {
		return "the runtime has nothing of it"
	}
	return strings.Join(parts, "; ")
}

func sandboxWord(s pod.Sandbox) string {
	switch {
	case s.Gone:
		return "gone"
	case s.Ready:
		return "ready"
	}
	return "not ready"
}

func containerWord(c *pod.Container) string {
	switch {
	case c.Gone:
		return "gone"
	case c.Unknown:
		return "in an unknown state"
	case c.State == pod.Exited && c.Detailed:
		return fmt.Sprintf("exited with %d", c.Exit.Code)
	case c.State == pod.Exited:
		return "exited"
	case c.State == pod.Running:
		return "running"
	}
	return "created"
}

func short(id string) string { return id[:min(len(id), 12)] }

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
