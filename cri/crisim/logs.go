package crisim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Logs opens the log file of a container for appending. It is called with a lock held and must not call the Runtime.
type Logs interface {
	Open(path string) (io.WriteCloser, error)
}

// Files writes logs to the file system.
type Files struct{}

// Open implements Logs; it makes missing directories.
func (Files) Open(path string) (io.WriteCloser, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // others read logs, as with real runtimes
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640) //nolint:gosec // mode of containerd
}

func (r *Runtime) openLog(c *container) error {
	path := c.logPath()
	if r.cfg.Logs == nil || path == "" {
		return nil
	}
	w, err := r.cfg.Logs.Open(path)
	if err != nil {
		return err
	}
	p := c.live()
	p.closeLog()
	p.log = w
	return nil
}

// startLog schedules the lines of the script; without a log there is nobody to see them and nothing is scheduled.
func (r *Runtime) startLog(c *container) {
	if c.process == nil || c.process.log == nil {
		return
	}
	for i := range c.script.Log {
		r.writeLog(c, &c.script.Log[i], 0)
	}
}

func (r *Runtime) writeLog(c *container, l *LogScript, written int) {
	written++
	text := strings.ReplaceAll(l.Text, "{n}", strconv.Itoa(written))
	c.process.say(cmp.Or(runtimeapi.LogStreamType(l.Stream), runtimeapi.Stdout), text)
	if l.Every > 0 && (l.Count == 0 || written < l.Count) {
		r.schedule(c, time.Duration(l.Every), func() { r.writeLog(c, l, written) })
	}
}

// say writes a line to the log and to those who are attached.
func (p *process) say(stream runtimeapi.LogStreamType, text string) {
	if p.log != nil {
		_, _ = fmt.Fprintf(p.log, "%s %s %s %s\n", time.Now().Format(time.RFC3339Nano), stream, runtimeapi.LogTagFull, text)
	}
	for _, v := range p.viewers {
		select {
		case v.lines <- line{stream, text + "\n"}:
		default:
		}
	}
}

// ReopenContainerLog implements the CRI.
func (r *runtimeServer) ReopenContainerLog(ctx context.Context, req *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ReopenContainerLogResponse]{
		target: r.containerTarget("ReopenContainerLog", req.GetContainerId()),
		effect: func(context.Context) (*runtimeapi.ReopenContainerLogResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c, ok := r.store.containers.get(req.GetContainerId())
			if !ok {
				return nil, notFound("an error occurred when try to find container %q", req.GetContainerId())
			}
			if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
				return nil, errors.New("container is not running")
			}
			if err := r.openLog(c); err != nil {
				return nil, fmt.Errorf("failed to create and open log file: %w", err)
			}
			return &runtimeapi.ReopenContainerLogResponse{}, nil
		},
	})
}
