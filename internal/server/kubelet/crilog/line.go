package crilog

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"time"
)

// line is one line of a log file: what a container printed, or a part of it.
type line struct {
	at      time.Time
	stderr  bool
	content []byte // with its end of line, but for a part that is not the last
}

// parse reads "TIMESTAMP STREAM TAG[:TAG…] CONTENT\n".
func parse(raw []byte) (line, bool) {
	at, rest, _ := bytes.Cut(raw, []byte{' '})
	stream, rest, _ := bytes.Cut(rest, []byte{' '})
	tags, content, ok := bytes.Cut(rest, []byte{' '})
	when, err := time.Parse(time.RFC3339Nano, string(at))
	if !ok || err != nil || string(stream) != "stdout" && string(stream) != "stderr" {
		return line{}, false
	}
	if tag, _, _ := strings.Cut(string(tags), ":"); tag == "P" {
		content = bytes.TrimSuffix(content, []byte{'\n'})
	}
	return line{at: when, stderr: string(stream) == "stderr", content: content}, true
}

// errFull says that as much was written as was asked for.
var errFull = errors.New("limit reached")

// writer passes on of the lines what was asked for.
type writer struct {
	Options
	out    io.Writer
	left   int64
	inside bool // a line of which a part was seen
	known  bool // the file's form
}

func newWriter(out io.Writer, o Options) *writer {
	w := &writer{Options: o, out: out, left: math.MaxInt64}
	if o.LimitBytes != nil {
		w.left = *o.LimitBytes
	}
	return w
}

// write passes on one line of a file. What cannot be read is left out without a
// word, for what a log holds is nobody's business; but then the first line shows that the whole is of another form.
func (w *writer) write(raw []byte) error {
	l, ok := parse(raw)
	switch {
	case !ok && !w.known:
		return errors.New("unsupported log format: the first line is not as the CRI has it, TIMESTAMP STREAM TAG CONTENT")
	case !ok:
		return nil
	}
	w.known = true
	begins := !w.inside
	w.inside = len(l.content) > 0 && l.content[len(l.content)-1] != '\n'
	if l.at.Before(w.Since) || l.stderr && w.Stream == "Stdout" || !l.stderr && w.Stream == "Stderr" {
		return nil
	}
	text := l.content
	if w.Timestamps && begins {
		text = append([]byte(l.at.Format("2006-01-02T15:04:05.000000000Z07:00 ")), text...)
	}
	if int64(len(text)) > w.left {
		text = text[:w.left]
	}
	if _, err := w.out.Write(text); err != nil {
		return err
	}
	if w.left -= int64(len(text)); w.left == 0 {
		return errFull
	}
	return nil
}
