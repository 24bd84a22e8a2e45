package app

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server"
)

// localAPI is what the read commands ask.
func (d *daemon) localAPI() http.Handler {
	a := &server.Agent{
		Store:    d.agent.Store,
		Queues:   d.agent.Engine.Queues,
		Graph:    func(now time.Time, s *pod.State) *dag.Graph[pod.Facts] { return d.agent.domain.Look(now, s) },
		Events:   d.agent.Events.Of,
		Episodes: d.agent.Journal.Episodes,
		Files:    d.fileList,
		Node:     d.nodeInfo,
		Plan:     d.plan,
	}
	return a.Handler()
}

func (d *daemon) fileList() []server.File {
	if d.files == nil {
		return []server.File{}
	}
	out := []server.File{}
	for _, f := range d.files.Files() {
		row := server.File{Path: f.Path, Pod: f.FullName, Ignored: f.Ignored}
		for _, w := range f.Warnings {
			row.Warnings = append(row.Warnings, w.String())
		}
		switch {
		case f.Err != nil:
			row.Error = f.Err.Error()
		case f.Conflict != "":
			row.Error = f.Conflict
		}
		out = append(out, row)
	}
	return out
}

// plan says what a manifest would make happen: the pod's own graph decided
// upon, and for an edited one the end of the pod that it replaces.
func (d *daemon) plan(path string, data []byte) (explain.Plan, error) {
	static, err := manifest.Load(path, data, manifest.Origin{Location: path, Source: manifest.SourceFile, NodeName: d.config.NodeName, Seen: time.Now()})
	if err != nil {
		return explain.Plan{}, err
	}
	now := time.Now()
	set := pod.SpecSet{Spec: &pod.Spec{Pod: static.Pod, Source: manifest.SourceFile, Path: path, Seen: now, Sum: sum(static.Revision)}}
	key := pod.KeyOf(static.Pod.UID)
	state, memo := d.agent.state(key), d.agent.Engine.Memo(key)
	next, _ := pod.Fold(state, set)
	plan := explain.PlanOf(now, memo, d.agent.domain.Look(now, next))
	return plan, nil
}

func (d *daemon) nodeInfo() server.Node {
	h := d.agent.PLEG.Health()
	r := d.agent.Store.Runtime()
	n := server.Node{
		Schema: server.NodeSchema, Name: d.config.NodeName, Version: Version(), Started: d.started, Checks: d.checks(),
		Runtime: server.RuntimeHealth{
			Endpoint: d.endpoint, Name: d.agent.Runtime.Name(), Version: d.agent.Runtime.Version(),
			Ready: r.Ready, NetworkReady: r.NetworkReady, Message: r.Message, Since: r.Since, Listed: h.Listed,
		},
	}
	return n
}

// checks are the lines of /healthz?verbose.
func (d *daemon) checks() []server.Check {
	h, r := d.agent.PLEG.Health(), d.agent.Store.Runtime()
	out := []server.Check{
		{Name: "ping"},
		check("runtime-list", h.ListErr),
		check("runtime-ready", notReady(r)),
		check("state-files", d.agent.Records.Health()),
	}
	for _, q := range d.agent.Engine.Queues() {
		if q.Stopped {
			out = append(out, check("class-"+q.Class, fmt.Errorf("%d calls have not returned after their deadline: nothing more is started", len(q.Lost))))
		}
	}
	return out
}

func notReady(r pod.RuntimeStatus) error {
	switch {
	case r.Ready:
		return nil
	case r.Message != "":
		return errors.New(r.Message)
	}
	return errors.New("the container runtime has not answered yet")
}

func check(name string, err error) server.Check {
	c := server.Check{Name: name}
	if err != nil {
		c.Error = err.Error()
	}
	return c
}
