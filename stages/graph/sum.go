package graph

import "github.com/flowlet/flowlet/dag"

// sum is a running FNV-1a hash of what decides a task key. It never is zero.
type sum uint64

func newSum() sum { return 14695981039346656037 }

func (s sum) str(v string) sum {
	for i := range len(v) {
		s = (s ^ sum(v[i])) * 1099511628211
	}
	return (s ^ 0xff) * 1099511628211 // ends the string: "a","b" is not "ab"
}

func (s sum) num(v uint64) sum {
	for range 8 {
		s = (s ^ sum(v&0xff)) * 1099511628211
		v >>= 8
	}
	return s
}

// key returns the task key of something to do that s decides; nothing for the zero sum.
func (s sum) key(do string) dag.Key {
	if s == 0 {
		return dag.Key{}
	}
	return dag.Key{Do: do, In: uint64(s)}
}
