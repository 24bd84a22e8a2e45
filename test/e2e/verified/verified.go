// Package verified keeps the part of docs/verified.md that end-to-end tests write: what was seen, on which runtime, and by
// which test. Nobody else writes it, so that it claims nothing that no run has seen.
package verified

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Seen is one thing that a test has seen to work.
type Seen struct {
	Feature string // in the words of the page
	Runtime string // with its version
	Test    string // the Go test
}

// Ledger collects what a run has seen. Its zero value is ready, and it is for concurrent use.
type Ledger struct {
	mu   sync.Mutex
	seen map[Seen]bool
}

// Add notes what was seen.
func (l *Ledger) Add(s Seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[Seen]bool{}
	}
	l.seen[s] = true
}

// All is what was seen, in the order of features, runtimes and tests.
func (l *Ledger) All() []Seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Keys(l.seen), func(a, b Seen) int {
		return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Runtime, b.Runtime), cmp.Compare(a.Test, b.Test))
	})
}

// The part of the page lies between these lines.
const (
	begin = "<!-- written by `make verified`, not by hand -->\n"
	end   = "<!-- end of what is written by `make verified` -->\n"
)

// Write returns the page with what was seen in place of what it had there.
func Write(page string, seen []Seen) (string, error) {
	before, _, after, err := cut(page)
	if err != nil {
		return "", err
	}
	return before + begin + table(seen) + end + after, nil
}

// Claims is what the page says was seen.
func Claims(page string) ([]Seen, error) {
	_, part, _, err := cut(page)
	if err != nil {
		return nil, err
	}
	var out []Seen
	var runtimes []string
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 2 || strings.HasPrefix(cells[0], "---"):
		case runtimes == nil:
			runtimes = cells[1:]
		default:
			for i, tests := range cells[1:] {
				for _, test := range strings.Fields(tests) {
					out = append(out, Seen{Feature: cells[0], Runtime: runtimes[i], Test: test})
				}
			}
		}
	}
	return out, nil
}

// Join is what a run of some tests has seen, with what the page claims of the tests that did not run.
func Join(page string, seen []Seen) ([]Seen, error) {
	claims, err := Claims(page)
	if err != nil {
		return nil, err
	}
	ran := map[string]bool{}
	for _, s := range seen {
		ran[s.Test] = true
	}
	return append(slices.DeleteFunc(claims, func(c Seen) bool { return ran[c.Test] }), seen...), nil
}

// Unseen are the claims of the page that a run has not seen. Versions may differ.
func Unseen(page string, seen []Seen) ([]Seen, error) {
	claims, err := Claims(page)
	if err != nil {
		return nil, err
	}
	known := map[Seen]bool{}
	for _, s := range seen {
		known[Seen{Feature: s.Feature, Test: s.Test}] = true
	}
	return slices.DeleteFunc(claims, func(c Seen) bool { return known[Seen{Feature: c.Feature, Test: c.Test}] }), nil
}

func cut(page string) (before, part, after string, err error) {
	before, rest, ok1 := strings.Cut(page, begin)
	part, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", "", "", fmt.Errorf("docs/verified.md has lost the lines between which the end-to-end tests write: %q and %q", begin, end)
	}
	return before, part, after, nil
}

// table has a row for each feature and a column for each runtime; the cells are tests.
func table(seen []Seen) string {
	tests, runtimes := map[string]map[string][]string{}, map[string]bool{}
	for _, s := range seen {
		if tests[s.Feature] == nil {
			tests[s.Feature] = map[string][]string{}
		}
		if has := tests[s.Feature][s.Runtime]; !slices.Contains(has, s.Test) {
			tests[s.Feature][s.Runtime] = append(has, s.Test)
		}
		runtimes[s.Runtime] = true
	}
	columns := slices.Sorted(maps.Keys(runtimes))
	slices.Reverse(columns) // the newest first
	var b strings.Builder
	fmt.Fprintf(&b, "| feature | %s |\n|---%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	for _, feature := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintf(&b, "| %s |", feature)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", strings.Join(tests[feature][c], " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
