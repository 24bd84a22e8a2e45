package manifest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problem is one thing that is wrong, or odd, at one place of a manifest.
type Problem struct {
	File    string // as it was given to Decode
	Line    int    // counted from 1; 0 when not known
	Field   string // such as spec.containers[0].image; may be empty
	Message string // a whole sentence part; names Field where there is one
}

// String is "file:line: message".
func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// Error says why a manifest cannot run. It has at least one Problem.
type Error struct{ Problems []Problem }

// shownProblems bounds the length of an error's text: a reader fixes the
// first few and tries again.
const shownProblems = 8

// Error joins the problems, the first eight of them in full.
func (e *Error) Error() string {
	texts := make([]string, 0, shownProblems+1)
	for i, p := range e.Problems {
		if i == shownProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(e.Problems)-i))
			break
		}
		texts = append(texts, p.String())
	}
	return strings.Join(texts, "; ")
}

// fail makes an Error of a single problem without a field.
func fail(file string, line int, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{File: file, Line: line, Message: fmt.Sprintf(format, args...)}}}
}

// problemsOf gives every field error the line where its field stands, or
// where the nearest field around it stands, and sorts them by line.
func (m *Manifest) problemsOf(errs field.ErrorList) []Problem {
	out := make([]Problem, 0, len(errs))
	for _, err := range errs {
		out = append(out, m.problemAt(err.Field, err.Error()))
	}
	slices.SortStableFunc(out, func(a, b Problem) int { return a.Line - b.Line })
	return out
}

func (m *Manifest) problemAt(path, message string) Problem {
	return Problem{File: m.File, Line: m.places.line(path), Field: path, Message: message}
}
