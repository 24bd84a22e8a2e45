package crisim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"
)

// streams is what is at the other end of the streams. It keeps to what docs/sim.md says.
type streams struct{ *Runtime }

var _ streaming.Runtime = streams{}

// Exec implements streaming.Runtime: the script's answer, else one of the programs that every container has.
func (r streams) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, err io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	answer, scripted, e := r.execAnswer(id, cmd)
	switch {
	case e != nil:
		return e
	case scripted:
		if e := sleep(ctx, time.Duration(answer.After)); e != nil {
			return e
		}
		write(out, answer.Stdout)
		write(err, answer.Stderr)
		return exited(answer.Code)
	}
	return program(ctx, cmd, terminal{in, out, err, resize})
}

// terminal is what a program talks to; each part may be nil.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	resize   <-chan remotecommand.TerminalSize
}

// program is echo, cat, size, sleep or exit; anything else ends at once with code 0.
func program(ctx context.Context, cmd []string, t terminal) error {
	if len(cmd) == 0 {
		return errors.New("there is no command")
	}
	name, args := cmd[0], cmd[1:]
	switch name {
	case "echo":
		write(t.out, strings.Join(args, " ")+"\n")
	case "cat":
		if t.in != nil && t.out != nil {
			_, _ = io.Copy(t.out, t.in)
		}
	case "size":
		if t.resize == nil {
			write(t.err, "there is no terminal\n")
			return exited(1)
		}
		select {
		case s := <-t.resize:
			write(t.out, fmt.Sprintf("%d %d\n", s.Height, s.Width))
		case <-ctx.Done():
		}
	case "sleep":
		d, err := time.ParseDuration(strings.Join(args, ""))
		if err != nil {
			write(t.err, err.Error()+"\n")
			return exited(1)
		}
		return sleep(ctx, d)
	case "exit":
		code, err := strconv.ParseInt(strings.Join(args, ""), 10, 32)
		if err != nil {
			write(t.err, err.Error()+"\n")
			return exited(1)
		}
		return exited(int32(code))
	}
	return nil
}

func write(w io.Writer, s string) {
	if w != nil && s != "" {
		_, _ = io.WriteString(w, s)
	}
}

func exited(code int32) error {
	if code == 0 {
		return nil
	}
	return exec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: int(code)}
}

// Attach implements streaming.Runtime: what the container logs from now on until it ends; each line that comes in is logged.
func (r streams) Attach(ctx context.Context, id string, in io.Reader, out, err io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	v, e := r.view(id)
	if e != nil {
		return e
	}
	defer r.unview(id, v)
	typed := make(chan string)
	if in != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { // ends with the connection, which the caller closes
			for s := bufio.NewScanner(in); s.Scan(); {
				select {
				case typed <- s.Text():
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for {
		select {
		case l, open := <-v.lines:
			switch {
			case !open:
				return nil
			case l.stream == runtimeapi.Stderr && err != nil:
				write(err, l.text)
			default:
				write(out, l.text)
			}
		case text := <-typed:
			r.typed(id, text)
		case <-ctx.Done():
			return nil
		}
	}
}

// PortForward implements streaming.Runtime: every port of a ready sandbox sends back what it gets.
func (r streams) PortForward(_ context.Context, sandbox string, _ int32, stream io.ReadWriteCloser) error {
	r.mu.Lock()
	b, ok := r.store.sandboxes.get(sandbox)
	ready := ok && b.ready
	r.mu.Unlock()
	if !ready {
		return notFound("failed to find a running sandbox %q", sandbox)
	}
	_, err := io.Copy(stream, stream)
	return err
}

// viewer is somebody who is attached. Its lines are closed when the container ends.
type viewer struct{ lines chan line }

type line struct {
	stream runtimeapi.LogStreamType
	text   string
}

// viewerLines is how far a viewer may lag behind; what does not fit is lost to it.
const viewerLines = 1000

func (r *Runtime) view(id string) (*viewer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.running(id)
	if err != nil {
		return nil, err
	}
	v := &viewer{lines: make(chan line, viewerLines)}
	p := c.live()
	p.viewers = append(p.viewers, v)
	return v, nil
}

func (r *Runtime) unview(id string, v *viewer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.store.containers.get(id)
	if !ok || c.process == nil {
		return
	}
	for i, other := range c.process.viewers {
		if other == v {
			c.process.viewers = append(c.process.viewers[:i:i], c.process.viewers[i+1:]...)
			return
		}
	}
}

func (r *Runtime) typed(id, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, err := r.running(id); err == nil {
		c.process.say(runtimeapi.Stdout, text)
	}
}
