package crisim

import "container/list"

// table keeps objects by ID and in order of creation, and finds those of one pod without looking at the others.
// Everything but each costs O(1), ofPod O(objects of that pod).
type table[T any] struct {
	byID  map[string]*list.Element
	order *list.List
	byPod map[string][]*entry[T]
}

type entry[T any] struct {
	id, pod string
	value   T
}

func newTable[T any]() table[T] {
	return table[T]{byID: map[string]*list.Element{}, order: list.New(), byPod: map[string][]*entry[T]{}}
}

// add puts value in under id; pod is the value of the pod UID label, or empty.
func (t *table[T]) add(id, pod string, value T) {
	e := &entry[T]{id: id, pod: pod, value: value}
	t.byID[id] = t.order.PushBack(e)
	if pod != "" {
		t.byPod[pod] = append(t.byPod[pod], e)
	}
}

// get returns the object, or T's zero value.
func (t *table[T]) get(id string) (value T, ok bool) {
	el, ok := t.byID[id]
	if !ok {
		return value, false
	}
	return el.Value.(*entry[T]).value, true //nolint:forcetypeassert // nothing else is put in
}

func (t *table[T]) remove(id string) {
	el, ok := t.byID[id]
	if !ok {
		return
	}
	e := t.order.Remove(el).(*entry[T]) //nolint:forcetypeassert // nothing else is put in
	delete(t.byID, id)
	if e.pod == "" {
		return
	}
	rest := t.byPod[e.pod]
	for i, other := range rest {
		if other == e {
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(t.byPod, e.pod)
		return
	}
	t.byPod[e.pod] = rest
}

// each calls f for every object, the oldest first; f may remove the one it is called with.
func (t *table[T]) each(f func(T)) {
	for el := t.order.Front(); el != nil; {
		next := el.Next()
		f(el.Value.(*entry[T]).value) //nolint:forcetypeassert // nothing else is put in
		el = next
	}
}

// ofPod calls f for every object of one pod, the oldest first.
func (t *table[T]) ofPod(uid string, f func(T)) {
	for _, e := range t.byPod[uid] {
		f(e.value)
	}
}

func (t *table[T]) len() int { return t.order.Len() }
