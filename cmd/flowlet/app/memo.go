package app

import "sync"

// memo remembers the results of a pure function of a string, for answers that
// are asked for at every step of every pod. It may be used concurrently.
type memo struct {
	of func(string) string

	mu    sync.Mutex
	known map[string]string
}

// memoLimit bounds a memo: it begins anew when more is asked of it.
const memoLimit = 4096

func memoize(f func(string) string) func(string) string {
	return (&memo{of: f, known: make(map[string]string)}).get
}

func (m *memo) get(in string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out, ok := m.known[in]
	if !ok {
		if len(m.known) >= memoLimit {
			clear(m.known)
		}
		out = m.of(in)
		m.known[in] = out
	}
	return out
}
