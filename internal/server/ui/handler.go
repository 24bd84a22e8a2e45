package ui

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/flowlet/flowlet/internal/explain/picture"
	"github.com/flowlet/flowlet/internal/server"
)

// Source is what the page shows; a *server.Agent is one.
type Source interface {
	Overview() server.Overview
	Look(ref string) (server.Look, error)
	NodeInfo() server.Node
	ClassTable() server.Policy
}

var _ Source = (*server.Agent)(nil)

// Path is where Handler is mounted.
const Path = "/ui/"

//go:embed static
var static embed.FS

type site struct {
	source  Source
	changes *Bell
	artist  picture.Artist
}

// Handler returns the page, for requests below Path. Streams to readers end with
// their requests, whose context the server ends.
func Handler(s Source, changes *Bell) http.Handler {
	p := &site{source: s, changes: changes}
	mux := http.NewServeMux()
	mux.Handle("GET "+Path+"static/", Static())
	mux.HandleFunc("GET "+Path+"{$}", p.show(p.pods))
	mux.HandleFunc("GET "+Path+"pod", p.show(p.pod))
	mux.HandleFunc("GET "+Path+"node", p.show(p.node))
	mux.HandleFunc("GET "+Path+"queues", p.show(p.queues))
	mux.HandleFunc(Path, func(w http.ResponseWriter, _ *http.Request) {
		Problem(w, http.StatusNotFound, "There is no such page", "The pages are Pods, Node and Queues.")
	})
	return guarded(mux)
}

// Static serves the style sheets, scripts and the icon below Path.
func Static() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return http.StripPrefix(Path+"static/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		if r.URL.Path == "graph.css" {
			w.Header().Set("Content-Type", "text/css; charset=utf-8")
			http.ServeContent(w, r, "graph.css", time.Time{}, strings.NewReader(picture.Style))
			return
		}
		http.ServeFileFS(w, r, files, r.URL.Path)
	}))
}

// guarded makes a browser ask nobody else, and show the page in no other.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Protect(w.Header())
		h.ServeHTTP(w, r)
	})
}

// Protect sets the headers that keep a browser from asking other origins, and
// other pages from showing or reading this one.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// unknownError says that what the page is about is not there.
type unknownError struct{ error }

func (u unknownError) Unwrap() error { return u.error }

// view makes one state of a page.
type view func(r *http.Request) (page, error)

// page is what the layout needs to know.
type page struct {
	Title string
	Tab   string // the one that is marked
	Node  string
	At    time.Time

	body string // name of its template
	data any
}

func (s *site) show(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			s.stream(w, r, v)
			return
		}
		p, err := v(r)
		if err == nil {
			write(w, http.StatusOK, p)
			return
		}
		if _, missing := errors.AsType[unknownError](err); missing {
			Problem(w, http.StatusNotFound, "Not on this node", err.Error())
			return
		}
		Problem(w, http.StatusInternalServerError, "The page cannot be made", err.Error())
	}
}

// write renders a whole document.
func write(w http.ResponseWriter, status int, p page) {
	var b bytes.Buffer
	if err := render(&b, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the client is gone, or it reads
}

// Problem answers with a page that says what is wrong. It may be used where no
// agent answers: all that it needs is the files of Static.
func Problem(w http.ResponseWriter, status int, title, text string) {
	Protect(w.Header())
	write(w, status, page{Title: title, At: time.Now(), body: "problem", data: text})
}
