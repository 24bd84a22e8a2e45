package main

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// terminal is the user's terminal, in raw mode: every key goes to the other
// side, Ctrl-C too. It tells its size, at first and whenever that changes.
type terminal struct {
	fd      int
	before  *term.State
	changed chan os.Signal
	first   bool
}

var _ remotecommand.TerminalSizeQueue = (*terminal)(nil)

// openTerminal fails if f is none. The caller closes it.
func openTerminal(f *os.File) (*terminal, error) {
	t := &terminal{fd: int(f.Fd()), changed: make(chan os.Signal, 1), first: true}
	var err error
	if t.before, err = term.MakeRaw(t.fd); err != nil {
		return nil, fmt.Errorf("taking the terminal: %w", err)
	}
	signal.Notify(t.changed, unix.SIGWINCH)
	return t, nil
}

// Next implements remotecommand.TerminalSizeQueue.
func (t *terminal) Next() *remotecommand.TerminalSize {
	if !t.first {
		if _, open := <-t.changed; !open {
			return nil
		}
	}
	t.first = false
	width, height, err := term.GetSize(t.fd)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)} //nolint:gosec // the kernel has them as uint16
}

// close gives the terminal back as it was.
func (t *terminal) close() {
	signal.Stop(t.changed)
	close(t.changed)
	_ = term.Restore(t.fd, t.before)
}
