package pleg

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
)

// relists lists everything, again and again: slowly once there was a list that
// began when the event stream was surely open, since from then on the events
// tell.
func (r *run) relists(ctx context.Context) {
	var failed error
	synced := false
	for {
		began := time.Now()
		streaming := r.health.streaming(began, r.cfg.Relist)
		pods, err := r.list(ctx, began)
		r.health.listed(began, err)
		if err == nil {
			r.tell(ctx, pods, synced)
			if !synced && ctx.Err() == nil {
				synced = true
				r.topic(pipeline.Synced(Name), nil)
			}
			if failed != nil { // the runtime was away
				wake(r.ask)
				wake(r.back)
			}
		}
		failed = err
		if !r.untilNext(ctx, began, streaming && err == nil) {
			return
		}
	}
}

// untilNext waits for the next list: the short period, and then, when the
// events tell, until the long one is over or somebody wants a list.
func (r *run) untilNext(ctx context.Context, began time.Time, slow bool) bool {
	if !pause(ctx, r.cfg.Relist, nil) {
		return false
	}
	if !slow {
		select {
		case <-r.soon:
		default:
		}
		return true
	}
	return pause(ctx, r.cfg.SlowRelist-time.Since(began), r.soon)
}

// list returns what the runtime has, by pod; those that are known and have
// nothing there are in it too.
func (r *run) list(ctx context.Context, began time.Time) ([]*pod.Observed, error) {
	sandboxes, err := r.cfg.Runtime.ListPodSandbox(ctx, nil)
	if err != nil {
		return nil, err
	}
	containers, err := r.cfg.Runtime.ListContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	g := grouping{began: began, ended: time.Now(), at: map[types.UID]*pod.Observed{}}
	for _, sb := range sandboxes {
		if o := g.of(crifact.Identity(sb.GetLabels(), nil).UID); o != nil {
			addSandbox(o, sb)
		}
	}
	for _, c := range containers {
		if o := g.of(crifact.Identity(c.GetLabels(), nil).UID); o != nil {
			addContainer(o, c)
		}
	}
	for _, k := range r.cfg.Known() {
		if !k.IsChore() {
			g.of(k.UID())
		}
	}
	return g.pods, nil
}

// grouping puts the rows of a list to their pods, in the order of the list.
type grouping struct {
	began, ended time.Time
	pods         []*pod.Observed
	at           map[types.UID]*pod.Observed
}

// of returns a pod's part of the list; nil for what belongs to no pod.
func (g *grouping) of(uid types.UID) *pod.Observed {
	if uid == "" {
		return nil
	}
	o, ok := g.at[uid]
	if !ok {
		o = &pod.Observed{Began: g.began, Ended: g.ended, Identity: pod.Identity{UID: uid}}
		g.at[uid] = o
		g.pods = append(g.pods, o)
	}
	return o
}

// tell emits what a list shows: pods of which all is known at once, the others
// when they have been read in detail. The first time it waits for those, also
// where another read is under way, but not for long: then their rows have to
// do. So what is there is known when the source says that it has told all.
func (r *run) tell(ctx context.Context, pods []*pod.Observed, synced bool) {
	var deep []*pod.Observed
	for _, o := range pods {
		uid := o.Identity.UID
		st := r.cfg.State(pod.KeyOf(uid))
		switch {
		case synced && r.reader.busy(uid): // it is told when that is over
		case nothingNew(st, o):
		case r.shallow(st, o):
			r.pod(uid, *o)
		default:
			deep = append(deep, o)
		}
	}
	r.retries.keep(pods)
	slices.SortStableFunc(deep, func(a, b *pod.Observed) int { return rank(a) - rank(b) })
	w := newWait(deep)
	for _, o := range deep {
		r.reader.add(o.Identity.UID, func() { r.read(ctx, *o, w) })
	}
	if !synced {
		w.wait(ctx, 2*r.cfg.CallTimeout)
		for _, o := range deep {
			if ctx.Err() == nil && w.missing(o.Identity.UID) {
				r.pod(o.Identity.UID, *o)
			}
		}
	}
}

// rank puts pods that run before the others.
func rank(o *pod.Observed) int {
	if lives(o) {
		return 0
	}
	return 1
}

func lives(o *pod.Observed) bool {
	return slices.ContainsFunc(o.Sandboxes, func(sb pod.Sandbox) bool { return sb.Ready }) ||
		slices.ContainsFunc(o.Containers, func(c pod.Container) bool { return c.State == pod.Running })
}

// wanted reports whether somebody is interested in a pod's details: it runs,
// or there is a spec of it.
func wanted(st *pod.State, o *pod.Observed) bool { return lives(o) || (st != nil && st.Spec != nil) }

// shallow reports whether the rows are enough for now: they tell all, or the
// pod is dead and nobody asked for it, or it could not be read a short time ago.
func (r *run) shallow(st *pod.State, o *pod.Observed) bool {
	if !wanted(st, o) || r.retries.waits(o.Identity.UID) {
		return true
	}
	return !slices.ContainsFunc(o.Sandboxes, func(sb pod.Sandbox) bool { return !knowsSandbox(st, &sb) }) &&
		!slices.ContainsFunc(o.Containers, func(c pod.Container) bool { return !knowsContainer(st, &c) })
}

// nothingNew reports whether a list shows a pod just as it is known.
func nothingNew(st *pod.State, o *pod.Observed) bool {
	if st == nil {
		return len(o.Sandboxes)+len(o.Containers) == 0
	}
	if len(st.Unsure) > 0 || (st.Identity.Name == "" && o.Identity.Name != "") {
		return false
	}
	here := 0
	for i := range st.Sandboxes {
		if !st.Sandboxes[i].Gone {
			here++
		}
	}
	for i := range st.Containers {
		if !st.Containers[i].Gone {
			here++
		}
	}
	if here != len(o.Sandboxes)+len(o.Containers) {
		return false
	}
	deep := wanted(st, o)
	for i := range o.Sandboxes {
		row := &o.Sandboxes[i]
		same := func(sb pod.Sandbox) bool { return sb.ID == row.ID && sb.Ready == row.Ready && !sb.Gone }
		if !slices.ContainsFunc(st.Sandboxes, same) || (deep && !knowsSandbox(st, row)) {
			return false
		}
	}
	for i := range o.Containers {
		row := &o.Containers[i]
		c := find(st, row.ID)
		if c == nil || c.Gone || c.State != row.State || c.Unknown != row.Unknown || (deep && !c.Detailed) {
			return false
		}
	}
	return true
}

// read emits a pod with its details. Where these cannot be read its rows have
// to do; then it is tried again later.
func (r *run) read(ctx context.Context, o pod.Observed, w *wait) {
	o.Sandboxes, o.Containers = slices.Clone(o.Sandboxes), slices.Clone(o.Containers)
	err := r.detail(ctx, &o)
	if ctx.Err() != nil {
		return
	}
	r.retries.note(o.Identity.UID, err)
	r.pod(o.Identity.UID, o)
	w.done(o.Identity.UID)
}
