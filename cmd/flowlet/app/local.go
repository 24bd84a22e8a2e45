package app

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/internal/server/kubelet"
	"github.com/flowlet/flowlet/internal/server/ui"
	"github.com/flowlet/flowlet/sources/file"
	"github.com/flowlet/flowlet/stages/evict"
	"github.com/flowlet/flowlet/stages/sandbox"
)

// localAPI is what the commands ask: flowlet's own paths below /v1, the page,
// and the kubelet's paths.
func (d *daemon) localAPI() http.Handler {
	a := &server.Agent{
		Store:    d.agent.Store,
		Queues:   d.agent.Engine.Queues,
		Graph:    func(now time.Time, s *pod.State) *dag.Graph[pod.Facts] { return d.agent.domain.Look(now, s) },
		Memo:     d.agent.Engine.Memo,
		Events:   d.agent.Events.Of,
		Episodes: d.agent.Journal.Episodes,
		Files:    d.fileList,
		Node:     d.nodeInfo,
		Sources:  d.agent.sources,
		Plan:     d.plan,

		Unsupported: d.agent.unsupported,
	}
	k := &kubelet.API{
		Store: d.agent.Store, Pods: a.PodList, Streams: d.runtime, Commands: d.runtime,
		LogDir: func(p *v1.Pod) string { return sandbox.LogDir(d.logRoot(), p) },
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", a.Handler())
	mux.Handle(ui.Path, ui.Handler(a, &d.agent.changes))
	mux.Handle("/", k.Handler())
	return mux
}

// fileList is what became of all manifests.
func (d *daemon) fileList() []server.File { return append(d.fileRows(), d.urlRows()...) }

func (d *daemon) urlRows() []server.File {
	if d.url == nil {
		return nil
	}
	var out []server.File
	st := d.url.State()
	if st.Err != nil {
		out = append(out, server.File{Path: st.URL, Error: st.URL + ": " + st.Err.Error(), Keeps: len(st.Pods) > 0})
	}
	for _, p := range st.Pods {
		row := server.File{Path: st.URL, Pod: p.FullName, Error: p.Conflict}
		for _, w := range p.Warnings {
			row.Warnings = append(row.Warnings, w.String())
		}
		out = append(out, row)
	}
	return out
}

func (d *daemon) fileRows() []server.File {
	out := []server.File{}
	if d.files == nil {
		return out
	}
	path := d.config.Kubelet.StaticPodPath
	if _, err := os.Stat(path); err != nil {
		out = append(out, server.File{Path: path, Error: fmt.Sprintf("staticPodPath %s cannot be read, it is tried again: %v", path, err)})
	}
	for _, f := range d.files.Files() {
		out = append(out, fileRow(f))
	}
	return out
}

func fileRow(f file.FileStatus) server.File {
	row := server.File{Path: f.Path, Pod: f.FullName, Ignored: f.Ignored}
	for _, w := range f.Warnings {
		row.Warnings = append(row.Warnings, w.String())
	}
	switch {
	case f.Err != nil:
		row.Error, row.Keeps = f.Err.Error(), f.FullName != "" && f.Conflict == ""
	case f.Conflict != "":
		row.Error = f.Conflict
	}
	if row.Error != "" && !strings.HasPrefix(row.Error, f.Path) {
		row.Error = f.Path + ": " + row.Error
	}
	return row
}

func (d *daemon) nodeInfo() server.Node {
	h := d.agent.PLEG.Health()
	r := d.agent.Store.Runtime()
	n := server.Node{
		Schema: server.NodeSchema, Name: d.config.NodeName, Version: Version(), Started: d.started, Checks: d.checks(),
		Runtime: server.RuntimeHealth{
			Endpoint: d.endpoint, Name: d.agent.Runtime.Name(), Version: d.agent.Runtime.Version(),
			Ready: r.Ready, NetworkReady: r.NetworkReady, Message: r.Message, Since: r.Since, Listed: h.Listed,
			Events: h.Events, EventsOff: h.Why, EventsSince: h.Since, Answered: h.Answered,
		},
	}
	if d.agent.eviction != nil {
		n.Room = room(d.agent.eviction.State())
	}
	return n
}

// room is how the node stands, in words of the local API.
func room(s evict.State) server.Room {
	out := server.Room{At: s.At, Did: s.Did}
	if s.At.IsZero() {
		return out
	}
	for _, signal := range evict.Signals() {
		if a := signal.Read(&s.Node); a.Capacity > 0 {
			out.Amounts = append(out.Amounts, server.Amount{Signal: string(signal), Available: a.Available, Capacity: a.Capacity})
		}
	}
	for _, c := range s.Conditions {
		out.Pressures = append(out.Pressures, server.Pressure{Type: string(c.Type), Since: c.Since})
	}
	return out
}

// checks are the lines of /healthz?verbose.
func (d *daemon) checks() []server.Check {
	h, r := d.agent.PLEG.Health(), d.agent.Store.Runtime()
	out := []server.Check{
		{Name: "ping"},
		check("runtime-list", h.ListErr),
		{Name: "runtime-ready", Error: text(notReady(r, h.StatusErr)), Since: r.Since},
		check("state-files", d.agent.Records.Health()),
	}
	for _, s := range d.agent.pipeline.Stats().Sources {
		if !s.RetryAt.IsZero() && s.Err != nil {
			out = append(out, check("source-"+s.Name, s.Err))
		}
	}
	for _, q := range d.agent.Engine.Queues() {
		if q.Stopped {
			out = append(out, check("class-"+q.Class, fmt.Errorf("%d calls have not returned after their deadline: nothing more is started", len(q.Lost))))
		}
	}
	return out
}

// notReady says why the runtime is not ready: in its own words, or with the
// error of asking it.
func notReady(r pod.RuntimeStatus, asking error) error {
	switch {
	case asking != nil:
		return asking
	case r.Ready:
		return nil
	case r.Message != "":
		return errors.New(r.Message)
	}
	return errors.New("the container runtime has not answered yet")
}

func check(name string, err error) server.Check { return server.Check{Name: name, Error: text(err)} }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
