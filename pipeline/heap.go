package pipeline

import "container/heap"

// ordered is a heap of slots that can be moved and taken out from within.
type ordered[K comparable, S any] struct {
	list sorted[K, S]
}

// add puts a slot in, or moves it to where it belongs now.
func (o *ordered[K, S]) add(s *slot[K, S]) {
	if i := *o.list.at(s); i >= 0 {
		heap.Fix(&o.list, i)
		return
	}
	heap.Push(&o.list, s)
}

// remove takes a slot out, if it is in.
func (o *ordered[K, S]) remove(s *slot[K, S]) {
	if i := *o.list.at(s); i >= 0 {
		heap.Remove(&o.list, i)
	}
}

// first returns the slot that comes first, nil if there is none.
func (o *ordered[K, S]) first() *slot[K, S] {
	if len(o.list.slots) == 0 {
		return nil
	}
	return o.list.slots[0]
}

// sorted is the heap.Interface beneath. at says where a slot keeps its index
// in this heap, -1 when it is not in.
type sorted[K comparable, S any] struct {
	slots []*slot[K, S]
	less  func(a, b *slot[K, S]) bool
	at    func(*slot[K, S]) *int
}

func (l *sorted[K, S]) Len() int           { return len(l.slots) }
func (l *sorted[K, S]) Less(i, j int) bool { return l.less(l.slots[i], l.slots[j]) }

func (l *sorted[K, S]) Swap(i, j int) {
	l.slots[i], l.slots[j] = l.slots[j], l.slots[i]
	*l.at(l.slots[i]), *l.at(l.slots[j]) = i, j
}

func (l *sorted[K, S]) Push(x any) {
	s, _ := x.(*slot[K, S])
	*l.at(s) = len(l.slots)
	l.slots = append(l.slots, s)
}

func (l *sorted[K, S]) Pop() any {
	last := len(l.slots) - 1
	s := l.slots[last]
	l.slots[last] = nil
	l.slots = l.slots[:last]
	*l.at(s) = -1
	return s
}
