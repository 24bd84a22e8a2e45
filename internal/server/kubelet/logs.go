package kubelet

import (
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server/kubelet/crilog"
)

func (a *API) containerLogs(w http.ResponseWriter, r *http.Request) {
	q, err := parseLogQuery(r.URL.Query(), time.Now())
	if _, form := errors.AsType[undecodable](err); form {
		failJSON(w, http.StatusBadRequest, err)
		return
	}
	if err != nil {
		failJSON(w, http.StatusUnprocessableEntity, err)
		return
	}
	name, container := r.PathValue("pod"), r.PathValue("container")
	v, ok := a.Store.Named(r.PathValue("namespace"), name, "")
	switch {
	case !ok:
		fail(w, http.StatusNotFound, "pod %q does not exist", name)
		return
	case !hasContainer(v, container):
		fail(w, http.StatusNotFound, "container %q not found in pod %q", container, name)
		return
	}
	log, err := a.find(v, container, q.previous)
	if err == nil {
		_, err = os.Stat(log.path)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	a.send(w, r, log, q)
}

// send streams a log to the client. Once that has begun, an error can only be
// told by breaking the connection off.
func (a *API) send(w http.ResponseWriter, r *http.Request, log logFile, q logQuery) {
	out := &output{w: w}
	if q.follow {
		q.read.Running = func() bool { return a.running(log) }
		out.flush = http.NewResponseController(w).Flush
		out.begin()
	}
	err := crilog.Read(r.Context(), log.path, q.read, out)
	switch {
	case err == nil:
		out.begin()
	case out.begun:
		panic(http.ErrAbortHandler)
	default:
		fail(w, http.StatusBadRequest, "%v", err)
	}
}

// output is the body of an answer; with flush each line is passed on at once.
type output struct {
	w     http.ResponseWriter
	flush func() error
	begun bool
}

func (o *output) begin() {
	if o.begun {
		return
	}
	o.begun = true
	o.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	o.w.WriteHeader(http.StatusOK)
	if o.flush != nil {
		_ = o.flush() // a client that is gone shows at the next write
	}
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.begin()
	n, err := o.w.Write(p)
	if err != nil || o.flush == nil {
		return n, err
	}
	return n, o.flush()
}

// running reports whether more may be logged. A container that the runtime
// has not told of yet may run.
func (a *API) running(log logFile) bool {
	v, ok := a.Store.Get(log.key)
	if !ok {
		return false
	}
	c, known := byID(v.State, log.id)
	if log.id == "" {
		if c, known = v.State.Newest(log.container); !known {
			return true
		}
	}
	return known && !c.Gone && c.State != pod.Exited
}
