package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/internal/podstore"
)

// Streams prepares streams at the runtime; *cri.Client does. Each method
// returns the URL of one stream.
type Streams interface {
	Exec(ctx context.Context, req *runtimeapi.ExecRequest) (string, error)
	Attach(ctx context.Context, req *runtimeapi.AttachRequest) (string, error)
	PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (string, error)
}

// Commands runs commands at the runtime; *cri.Client does.
type Commands interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// API is what the paths need. Its functions may be called concurrently.
type API struct {
	Store    *podstore.Store
	Pods     func() *v1.PodList
	Streams  Streams
	Commands Commands
	// LogDir is the directory of a pod's logs.
	LogDir func(p *v1.Pod) string
}

// Handler returns the handler of all paths. The context of a request has to
// end when its connection does, also after an upgrade.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.Pods()) })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", a.containerLogs)
	for _, p := range []struct {
		path, tail string
		methods    []string
		serve      func(http.ResponseWriter, *http.Request, podstore.View)
	}{
		{"/exec", "/{container}", []string{"GET", "POST"}, a.exec},
		{"/attach", "/{container}", []string{"GET", "POST"}, a.attach},
		{"/portForward", "", []string{"GET", "POST"}, a.portForward},
		{"/run", "/{container}", []string{"POST"}, a.run},
	} {
		serve := a.withPod(p.serve)
		for _, method := range p.methods {
			mux.HandleFunc(method+" "+p.path+"/{namespace}/{pod}"+p.tail, serve)
			mux.HandleFunc(method+" "+p.path+"/{namespace}/{pod}/{uid}"+p.tail, serve)
		}
	}
	return mux
}

// withPod finds the pod of the path. A UID in it has to be the pod's.
func (a *API) withPod(serve func(http.ResponseWriter, *http.Request, podstore.View)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, ok := a.Store.Named(r.PathValue("namespace"), r.PathValue("pod"), types.UID(r.PathValue("uid")))
		if !ok {
			fail(w, http.StatusNotFound, "pod does not exist")
			return
		}
		serve(w, r, v)
	}
}

func fail(w http.ResponseWriter, status int, format string, args ...any) {
	http.Error(w, fmt.Sprintf(format, args...), status)
}

// failJSON is how the kubelet answers a query that it does not understand.
func failJSON(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()}) //nolint:errchkjson // the client is gone, or it reads
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // the client is gone, or it reads
}
