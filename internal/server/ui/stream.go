package ui

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"
)

const (
	// pause is how long a page rests between two states: what changes meanwhile is one change.
	pause = 250 * time.Millisecond
	// refresh is how often a page comes again when nothing has changed, so that what counts down is right.
	refresh = 5 * time.Second
)

// stream sends the page's body whenever something has changed, until the
// request ends. The first comes at once.
func (s *site) stream(w http.ResponseWriter, r *http.Request, v view) {
	rang, stop := s.changes.Listen()
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		if err := s.send(w, r, v); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		if !wait(r, pause, nil) || !wait(r, refresh-pause, rang) {
			return
		}
	}
}

// wait returns after d, or earlier when it rang; false: when the request has ended.
func wait(r *http.Request, d time.Duration, rang <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-t.C:
	case <-rang:
	}
	return true
}

// send writes one state: an event "page" with the body, or "gone" with a
// sentence for what is no longer there.
func (s *site) send(w http.ResponseWriter, r *http.Request, v view) error {
	p, err := v(r)
	if _, missing := errors.AsType[unknownError](err); missing {
		return event(w, "gone", err.Error())
	}
	if err != nil {
		return event(w, "trouble", err.Error())
	}
	var b bytes.Buffer
	if err := renderBody(&b, p); err != nil {
		return event(w, "trouble", err.Error())
	}
	return event(w, "page", b.String())
}

func event(w http.ResponseWriter, name, text string) error {
	_, err := w.Write([]byte("event: " + name + "\ndata: " + strings.ReplaceAll(text, "\n", "\ndata: ") + "\n\n"))
	return err
}
