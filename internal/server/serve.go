package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// SocketName is the local socket's name below the root directory.
const SocketName = "flowlet.sock"

// ListenLocal opens the local socket below root, for its owner only. One that
// a dead agent left is replaced: the caller holds the lock on root.
func ListenLocal(root string) (net.Listener, error) {
	path := filepath.Join(root, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening the local socket: %w", err)
	}
	old := unix.Umask(0o177) // the socket is never open to others, not even between bind and chmod
	defer unix.Umask(old)
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("opening the local socket: %w", err)
	}
	return l, nil
}

// parting is how long requests may take to end after the server was told to.
const parting = 5 * time.Second

// Serve answers on l until ctx ends, and returns when all requests have ended.
// A request's context ends with ctx, and when its connection is gone, also
// after an upgrade. Connections that are in use 5 s after the end of ctx, by a
// client that does not read for example, are closed.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	var requests sync.WaitGroup // those after an upgrade as well, which the server no longer counts
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			defer requests.Done()
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 90 * time.Second, MaxHeaderBytes: 1 << 20,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: watch,
	}
	cut, closeAll := context.WithCancel(context.WithoutCancel(ctx))
	defer closeAll()
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(parting, closeAll)
		err := s.Shutdown(cut)
		if cut.Err() != nil {
			err = nil // who was cut off did not want to know
		}
		stopped <- errors.Join(err, s.Close())
	})
	err := s.Serve(watched{l, cut})
	if !stop() {
		err = <-stopped
		requests.Wait()
		return err
	}
	return fmt.Errorf("serving on %s: %w", l.Addr(), err)
}

// Healthz answers "ok", or 500 with what is wrong; with ?verbose one line per check.
func Healthz(checks func() []Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		var body string
		bad := false
		for _, c := range checks() {
			if c.Error == "" {
				body += "[+]" + c.Name + " ok\n"
				continue
			}
			bad = true
			body += "[-]" + c.Name + " failed: " + c.Error + "\n"
		}
		switch {
		case bad:
			w.WriteHeader(http.StatusInternalServerError)
			body += "healthz check failed\n"
		case r.URL.Query().Has("verbose"):
			body += "healthz check passed\n"
		default:
			body = "ok"
		}
		_, _ = w.Write([]byte(body))
	})
	return mux
}
