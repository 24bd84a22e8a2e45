package ui_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a source with one pod that is blocked and one chore.
type node struct {
	empty bool
	gone  atomic.Bool
	seen  atomic.Int32 // how often the pod was looked at
}

var began = time.Now().Add(-time.Minute)

const nasty = `<script>alert("x")</script>`

func web() *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}
	p.Spec.Containers = []v1.Container{{Name: "a"}}
	p.Status.Phase = v1.PodPending
	p.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: "a", Image: "x:1", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: nasty}},
	}}
	return p
}

func stages() []explain.Stage {
	return []explain.Stage{
		{ID: "admit", Kind: "admit", State: "done", Since: began},
		{ID: "image[x:1]", Kind: "image", Of: "x:1", State: "failed", Do: "pull", Since: began, Attempt: 2, Error: nasty, Class: "image"},
		{ID: "container[a]", Kind: "container", Of: "a", Need: []string{"admit", "image[x:1]"}, State: "waiting", On: []string{"image[x:1]"}, Since: began},
	}
}

func why() explain.Report {
	return explain.Why(time.Now(), explain.Subject{Pod: "default/web", Phase: "pending", Stages: stages()})
}

func (n *node) Overview() server.Overview {
	if n.empty {
		return server.Overview{Node: "n"}
	}
	return server.Overview{Node: "n", Rows: []server.Row{{Pod: web(), Why: why()}}, Files: []server.File{{Path: "/m/a.yaml", Error: nasty, Keeps: true}, {Path: "/m/fine.yaml"}}}
}

func (n *node) Look(ref string) (server.Look, error) {
	n.seen.Add(1)
	if n.gone.Load() || ref != "u1" && ref != "node/logs" {
		return server.Look{}, errors.New("pod " + ref + " is not known here")
	}
	l := server.Look{Node: "n", Why: why(), Stages: stages()}
	if ref == "u1" {
		l.Pod = web()
		l.Events = []pod.Event{{Type: v1.EventTypeWarning, Reason: "Failed", Message: "first", Count: 3, First: began, Last: began}, {Reason: "Later", Message: nasty, Last: began}}
		t := explain.Describe(explain.Trace{Pod: "default/web", Kind: "pod.start", Outcome: "ready", From: began, To: began.Add(4 * time.Second), Spans: []explain.Span{
			{Kind: "image", Of: "x:1", State: "queued", From: began, To: began.Add(time.Second), Class: "image"},
			{Kind: "image", Of: "x:1", State: "running", From: began.Add(time.Second), To: began.Add(3 * time.Second), Do: nasty},
			{Kind: "container", Of: "a", State: "waiting", From: began, To: began.Add(3 * time.Second), On: []string{"image[x:1]"}},
			{Kind: "container", Of: "a", State: "running", From: began.Add(3 * time.Second), To: began.Add(4 * time.Second)},
		}})
		l.Trace = &t
	}
	return l, nil
}

func (*node) NodeInfo() server.Node {
	return server.Node{
		Name: "n", Started: began, Checks: []server.Check{{Name: "ping"}, {Name: "runtime-list", Error: nasty}},
		Chores: []server.Chore{{Name: "node/logs", Asked: began, Why: "every 10s", Errors: []string{nasty}}},
		Room:   server.Room{At: began, Amounts: []server.Amount{{Signal: "memory.available", Available: 1 << 30, Capacity: 10 << 30}, {Signal: "pid.available", Available: 1, Capacity: 100}}},
	}
}

func (n *node) ClassTable() server.Policy {
	p := server.Policy{Classes: []server.ClassRow{{Name: "image", Slots: 1, Running: 1, Waiting: 1}, {Name: "", Slots: 16}}}
	if !n.empty {
		w := explain.Work{Pod: "default/web", Stage: "image[x:1]", Since: began}
		p.Work = []explain.Queue{{Class: "image", Slots: 1, Running: []explain.Work{w}, Waiting: []explain.Work{w}}}
	}
	return p
}

func get(t *testing.T, h http.Handler, path string) (int, string, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	require.NotNil(t, w.Body)
	return w.Code, w.Body.String(), w.Header()
}
