package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/explain/picture"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

// Agent is what the local API shows. The functions may be called concurrently.
type Agent struct {
	Store  *podstore.Store
	Queues func() []dag.Queue[pod.Key]
	Graph  func(now time.Time, s *pod.State) *dag.Graph[pod.Facts]
	// Memo is what the engine remembers of a pod now. A view has it as of the last
	// step, which does not show that a stage has got its slot, or is lost.
	Memo     func(k pod.Key) dag.Memo
	Events   func(uid types.UID) []pod.Event
	Episodes func(k pod.Key) []journal.Episode
	Files    func() []File
	Node     func() Node
	// Sources are those that the agent has; pods of others are left alone.
	Sources []string
	// Unsupported names the fields of a pod that this build does not act on.
	Unsupported func(p *v1.Pod) []string
	// Plan says what a manifest at that path would make happen; nil data: its removal.
	Plan func(path string, data []byte) (explain.Plans, error)
}

// File is what the agent makes of one manifest file.
type File struct {
	Path     string   `json:"path"`
	Pod      string   `json:"pod,omitempty"`
	Keeps    bool     `json:"keeps,omitempty"` // despite the error the pod goes on as the file last said it
	Ignored  string   `json:"ignored,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Detail is one pod with what its status does not say.
type Detail struct {
	Pod    *v1.Pod        `json:"pod"`
	Why    explain.Report `json:"why"`
	Events []pod.Event    `json:"events"`
}

// Problem is the body of a failed request.
type Problem struct {
	Error string `json:"error"`
}

// PolicySchema names the JSON form of Policy.
const PolicySchema = "flowlet.dev/policy/v1"

// Policy is the class table with its queues.
type Policy struct {
	Schema  string          `json:"schema"`
	Classes []ClassRow      `json:"classes"`
	Work    []explain.Queue `json:"queues"`
}

// ClassRow is a row of the policy, as in the policy file.
type ClassRow struct {
	Name     string `json:"name"`
	Slots    int    `json:"slots"`
	Order    string `json:"order"`
	Deadline string `json:"deadline,omitempty"`
	Backoff  string `json:"backoff,omitempty"`
	MaxLost  int    `json:"maxLost,omitempty"`
	Running  int    `json:"running"`
	Waiting  int    `json:"waiting"`
	Lost     int    `json:"lost"`
}

// maxManifest bounds the body of a plan; a manifest may have 10 MiB.
const maxManifest = 11 << 20

// Handler returns the local API.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { answer(w, r, do) })
	}
	get("GET /v1/pods", func(*http.Request) (any, error) { return a.PodList(), nil })
	get("GET /v1/files", func(*http.Request) (any, error) { return a.Files(), nil })
	get("GET /v1/node", func(*http.Request) (any, error) { return a.NodeInfo(), nil })
	get("GET /v1/policy", func(*http.Request) (any, error) { return a.ClassTable(), nil })
	get("GET /v1/pod", a.withPod(a.detail))
	get("GET /v1/why-node", func(*http.Request) (any, error) { return a.whyNode(time.Now()), nil })
	get("GET /v1/journal", a.withPod(func(_ *http.Request, v podstore.View) (any, error) {
		return journal.LogOf(a.Episodes(v.Key)), nil
	}))
	get("GET /v1/why", a.withPod(func(_ *http.Request, v podstore.View) (any, error) { return a.why(v), nil }))
	get("GET /v1/dag", a.withPod(a.dag))
	get("GET /v1/trace", a.withPod(a.trace))
	get("POST /v1/plan", a.plan)
	return mux
}

func answer(w http.ResponseWriter, r *http.Request, do func(*http.Request) (any, error)) {
	w.Header().Set("Content-Type", "application/json")
	out, err := do(r)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = Problem{Error: err.Error()}
	}
	_ = json.NewEncoder(w).Encode(out) //nolint:errchkjson // the client is gone, or it reads
}

func (a *Agent) withPod(do func(*http.Request, podstore.View) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		v, err := a.Store.Find(r.URL.Query().Get("pod"))
		if err != nil {
			return nil, err
		}
		return do(r, v)
	}
}

// PodList returns all pods that are not only remembered.
func (a *Agent) PodList() *v1.PodList {
	list := &v1.PodList{}
	list.APIVersion, list.Kind = "v1", "PodList"
	for _, v := range a.Store.All() {
		if remembered(v) {
			continue
		}
		list.Items = append(list.Items, *a.pod(v))
	}
	return list
}

func (a *Agent) detail(_ *http.Request, v podstore.View) (any, error) {
	if v.Key.IsChore() {
		return nil, fmt.Errorf("%s is a chore of the node and no pod: `flowlet get node` lists them, why, journal and dag take its name", v.Key)
	}
	return Detail{Pod: a.pod(v), Why: a.why(v), Events: a.Events(v.State.UID())}, nil
}

func (a *Agent) dag(r *http.Request, v podstore.View) (any, error) {
	now := time.Now()
	text, err := picture.Draw(r.Context(), now, a.stages(now, v), explain.Format(r.URL.Query().Get("format")))
	if err != nil {
		return nil, err
	}
	return text, nil
}

func (a *Agent) stages(now time.Time, v podstore.View) []explain.Stage {
	return explain.FromGraph(a.Graph(now, v.State), a.memo(v))
}

func (a *Agent) trace(r *http.Request, v podstore.View) (any, error) {
	want := journal.Kind(r.URL.Query().Get("kind"))
	episodes := a.Episodes(v.Key)
	for i := len(episodes) - 1; i >= 0; i-- {
		if e := episodes[i]; want == "" || e.Kind == want {
			return traceOf(v, e), nil
		}
	}
	if want == "" {
		want = "anything"
	}
	return nil, fmt.Errorf("no %s of pod %s is remembered: it has not happened since the agent began, or is too long ago", want, name(v))
}

func (a *Agent) plan(r *http.Request) (any, error) {
	q := r.URL.Query()
	if q.Get("path") == "" {
		return nil, errors.New("a plan needs the path of the manifest")
	}
	if q.Has("remove") {
		return a.Plan(q.Get("path"), nil)
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxManifest))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, fmt.Errorf("manifest %s is larger than 10 MiB", q.Get("path"))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	return a.Plan(q.Get("path"), append([]byte{}, data...))
}
