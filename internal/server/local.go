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
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

// Agent is what the local API shows. The functions may be called concurrently.
type Agent struct {
	Store    *podstore.Store
	Queues   func() []dag.Queue[pod.Key]
	Graph    func(now time.Time, s *pod.State) *dag.Graph[pod.Facts]
	Events   func(uid types.UID) []pod.Event
	Episodes func(k pod.Key) []journal.Episode
	Files    func() []File
	Node     func() Node
	// Plan says what a manifest at that path would make happen.
	Plan func(path string, data []byte) (explain.Plan, error)
}

// Node is what the agent says about itself and its runtime.
type Node struct {
	Schema  string        `json:"schema"` // flowlet.dev/node/v1
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Started time.Time     `json:"started"`
	Runtime RuntimeHealth `json:"runtime"`
	Checks  []Check       `json:"checks"`
	Pods    int           `json:"pods"`
	Left    []string      `json:"leftAlone,omitempty"` // pods of sources that are not configured
}

// RuntimeHealth is how the runtime fares.
type RuntimeHealth struct {
	Endpoint     string    `json:"endpoint"`
	Name         string    `json:"name"`
	Version      string    `json:"version,omitempty"`
	Ready        bool      `json:"ready"`
	NetworkReady bool      `json:"networkReady"`
	Message      string    `json:"message,omitempty"`
	Since        time.Time `json:"since,omitzero"`
	Events       string    `json:"events"` // "on", or why not
	Listed       time.Time `json:"listed,omitzero"`
}

// Check is one line of /healthz?verbose.
type Check struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"` // empty: fine
}

// NodeSchema names the JSON form of Node.
const NodeSchema = "flowlet.dev/node/v1"

// File is what the agent makes of one manifest file.
type File struct {
	Path     string   `json:"path"`
	Pod      string   `json:"pod,omitempty"`
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
	get("GET /v1/pods", func(*http.Request) (any, error) { return a.pods(), nil })
	get("GET /v1/files", func(*http.Request) (any, error) { return a.Files(), nil })
	get("GET /v1/node", func(*http.Request) (any, error) { return a.node(), nil })
	get("GET /v1/policy", func(*http.Request) (any, error) { return a.policy(), nil })
	get("GET /v1/pod", a.withPod(a.detail))
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

func (a *Agent) pods() *v1.PodList {
	list := &v1.PodList{}
	list.APIVersion, list.Kind = "v1", "PodList"
	for _, v := range a.Store.All() {
		list.Items = append(list.Items, *Pod(v))
	}
	return list
}

func (a *Agent) node() Node {
	n := a.Node()
	for _, v := range a.Store.All() {
		n.Pods++
		if v.State.Spec == nil && v.State.Removal == nil {
			n.Left = append(n.Left, v.State.Identity.Namespace+"/"+v.State.Identity.Name)
		}
	}
	return n
}

func (a *Agent) detail(_ *http.Request, v podstore.View) (any, error) {
	return Detail{Pod: Pod(v), Why: a.why(v), Events: a.Events(v.State.UID())}, nil
}

func (a *Agent) dag(r *http.Request, v podstore.View) (any, error) {
	now := time.Now()
	text, err := explain.Draw(now, a.stages(now, v), explain.Format(r.URL.Query().Get("format")))
	if err != nil {
		return nil, err
	}
	return text, nil
}

func (a *Agent) stages(now time.Time, v podstore.View) []explain.Stage {
	return explain.FromGraph(a.Graph(now, v.State), v.Memo)
}

func (a *Agent) trace(r *http.Request, v podstore.View) (any, error) {
	want := journal.Kind(r.URL.Query().Get("kind"))
	episodes := a.Episodes(v.Key)
	for i := len(episodes) - 1; i >= 0; i-- {
		if e := episodes[i]; want == "" || e.Kind == want {
			return traceOf(v, e), nil
		}
	}
	return nil, errors.New("nothing of that kind is remembered of the pod")
}

func (a *Agent) plan(r *http.Request) (any, error) {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxManifest))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	return a.Plan(r.URL.Query().Get("path"), data)
}
