package ui

import (
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/explain/picture"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server"
)

type podsView struct {
	Rows    []podRow
	Ready   int
	Blocked int
	Files   []server.File // with something wrong
}

type podRow struct {
	Namespace, Name, Ref string
	State                state
	Ready                string
	Restarts             int32
	Started              time.Time
	Block                *explain.Block
	More                 int // further stages that block it
}

// state is a word with the colour that goes with it.
type state struct{ Word, Class string }

func stateOf(p *v1.Pod) state {
	s := state{Word: server.Word(p)}
	switch {
	case s.Word == "Running" && allReady(p), s.Word == "Completed":
		s.Class = "done"
	case s.Word == "Running", s.Word == "ContainerCreating", s.Word == "PodInitializing", s.Word == "Pending":
		s.Class = "running"
	case s.Word == "Terminating", s.Word == "LeftAlone":
		s.Class = "waiting"
	default:
		s.Class = "failed"
		if len(s.Word) > 5 && s.Word[:5] == "Init:" && s.Word[5] >= '0' && s.Word[5] <= '9' {
			s.Class = "running"
		}
	}
	return s
}

func allReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

func (s *site) pods(*http.Request) (page, error) {
	o := s.source.Overview()
	v := podsView{}
	for _, r := range o.Rows {
		row := rowOf(r)
		v.Rows = append(v.Rows, row)
		if row.Block != nil {
			v.Blocked++
		}
		if allReady(r.Pod) {
			v.Ready++
		}
	}
	for _, f := range o.Files {
		if f.Error != "" || len(f.Warnings) > 0 {
			v.Files = append(v.Files, f)
		}
	}
	return page{Title: "Pods", Tab: "pods", Node: o.Node, At: time.Now(), body: "pods", data: v}, nil
}

func rowOf(r server.Row) podRow {
	p := r.Pod
	row := podRow{Namespace: p.Namespace, Name: p.Name, Ref: string(p.UID), State: stateOf(p)}
	if row.Ref == "" {
		row.Ref = p.Namespace + "/" + p.Name
	}
	row.Ready, row.Restarts = server.Counts(p)
	if t := p.Status.StartTime; t != nil {
		row.Started = t.Time
	}
	if n := len(r.Why.Blocking); n > 0 {
		row.Block, row.More = &r.Why.Blocking[0], n-1
	}
	return row
}

type podView struct {
	Name, Namespace string
	Chore           bool
	State           state
	Facts           []fact
	Why             explain.Report
	Graph           template.HTML
	Hidden          int
	Stages          []explain.Stage
	Containers      []container
	Events          []pod.Event // newest first
	Trace           *waterfall
}

type fact struct{ Name, Value string }

type container struct {
	Name, Kind, Image string
	State             state
	Message           string
	Since             time.Time
	Restarts          int32
}

func (s *site) pod(r *http.Request) (page, error) {
	ref := r.URL.Query().Get("pod")
	l, err := s.source.Look(ref)
	if err != nil {
		return page{}, unknownError{err}
	}
	now := time.Now()
	v := podView{Name: l.Why.Pod, Why: l.Why, Stages: l.Stages, Chore: l.Pod == nil, State: state{Word: l.Why.Phase, Class: "waiting"}}
	if v.Graph, err = s.artist.Graph(r.Context(), now, l.Stages, func(id string) string { return "#" + anchor(id) }); err != nil {
		return page{}, err
	}
	for _, shown := range picture.Shown(l.Stages) {
		if !shown {
			v.Hidden++
		}
	}
	if l.Trace != nil {
		v.Trace = fall(*l.Trace)
	}
	if p := l.Pod; p != nil {
		v.Name, v.Namespace, v.State = p.Name, p.Namespace, stateOf(p)
		v.Facts, v.Containers = facts(p), containers(p)
		v.Events = slices.Clone(l.Events)
		slices.Reverse(v.Events)
	}
	tab := "pods"
	if v.Chore {
		tab = "node"
	}
	return page{Title: v.Name, Tab: tab, Node: l.Node, At: now, body: "pod", data: v}, nil
}

func facts(p *v1.Pod) []fact {
	all := []fact{
		{"Address", p.Status.PodIP},
		{"Quality of service", string(p.Status.QOSClass)},
		{"Manifest", p.Annotations[server.AnnotationManifest]},
		{"UID", string(p.UID)},
		{"Message", p.Status.Message},
		{"No effect", p.Annotations[server.AnnotationUnsupported]},
		{"Left alone", p.Annotations[server.AnnotationLeftAlone]},
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func containers(p *v1.Pod) []container {
	var out []container
	add := func(kind string, all []v1.ContainerStatus) {
		for i := range all {
			out = append(out, containerOf(kind, &all[i]))
		}
	}
	add("init", p.Status.InitContainerStatuses)
	add("", p.Status.ContainerStatuses)
	add("ephemeral", p.Status.EphemeralContainerStatuses)
	return out
}

func containerOf(kind string, c *v1.ContainerStatus) container {
	out := container{Name: c.Name, Kind: kind, Image: c.Image, Restarts: c.RestartCount}
	switch {
	case c.State.Running != nil:
		out.State, out.Since = state{"running", "done"}, c.State.Running.StartedAt.Time
		if !c.Ready {
			out.State = state{"running, not ready", "running"}
		}
	case c.State.Terminated != nil:
		t := c.State.Terminated
		out.State, out.Since, out.Message = state{fmt.Sprintf("ended, exit code %d", t.ExitCode), "failed"}, t.FinishedAt.Time, t.Message
		if t.ExitCode == 0 {
			out.State.Class = "done"
		}
	case c.State.Waiting != nil:
		out.State, out.Message = state{c.State.Waiting.Reason, "held"}, c.State.Waiting.Message
	default:
		out.State = state{"unknown", "waiting"}
	}
	return out
}

type nodeView struct {
	server.Node
	Meters []meter
}

type meter struct {
	Name  string
	Left  string
	Used  int // percent
	Class string
}

func (s *site) node(*http.Request) (page, error) {
	n := s.source.NodeInfo()
	v := nodeView{Node: n}
	for _, a := range n.Room.Amounts {
		v.Meters = append(v.Meters, meterOf(a))
	}
	return page{Title: "Node " + n.Name, Tab: "node", Node: n.Name, At: time.Now(), body: "node", data: v}, nil
}

type queuesView struct {
	Busy []busy
	Idle []server.ClassRow
}

type busy struct {
	server.ClassRow
	Queue explain.Queue
}

func (s *site) queues(*http.Request) (page, error) {
	p := s.source.ClassTable()
	v := queuesView{}
	for _, c := range p.Classes {
		i := slices.IndexFunc(p.Work, func(q explain.Queue) bool { return q.Class == c.Name })
		if c.Name == "" {
			c.Name = "(others)"
		}
		if i < 0 {
			v.Idle = append(v.Idle, c)
			continue
		}
		v.Busy = append(v.Busy, busy{c, p.Work[i]})
	}
	return page{Title: "Queues", Tab: "queues", Node: s.source.NodeInfo().Name, At: time.Now(), body: "queues", data: v}, nil
}
