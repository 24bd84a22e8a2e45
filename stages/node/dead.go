package node

import (
	"cmp"
	"slices"

	"github.com/flowlet/flowlet/internal/pod"
)

// Dead bounds how many containers that have ended are kept on the node.
type Dead struct {
	// Pods returns the pods of the node; it is called at each round.
	Pods func() []*pod.State
	// Drop has these containers of a pod removed. It never blocks.
	Drop func(k pod.Key, ids []string)
}

// spare is a container that may be removed, with its pod.
type spare struct {
	of pod.Key
	c  pod.Container
}

// Bound has containers removed until no more than most are left. Each container
// of a pod has the same share of them, at least one attempt; what is still too
// much goes by age.
func (d *Dead) Bound(most int) {
	units, total := d.units()
	if total <= most {
		return
	}
	share := max(1, most/len(units))
	var left, drop []spare
	for _, list := range units {
		n := min(share, len(list))
		left, drop = append(left, list[:n]...), append(drop, list[n:]...)
	}
	if over := len(left) - most; over > 0 {
		slices.SortStableFunc(left, func(a, b spare) int {
			return cmp.Or(a.c.CreatedAt.Compare(b.c.CreatedAt), cmp.Compare(a.c.ID, b.c.ID))
		})
		drop = append(drop, left[:over]...)
	}
	d.drop(drop)
}

// All has all of them removed, and returns how many are on their way for the
// first time.
func (d *Dead) All() (asked int) {
	var drop []spare
	units, _ := d.units()
	for _, list := range units {
		drop = append(drop, list...)
	}
	d.drop(drop)
	return len(drop)
}

// units are the spare containers that nobody has asked to remove yet, by pod
// and name, the newest of each first.
func (d *Dead) units() (out [][]spare, total int) {
	for _, s := range d.Pods() {
		k, at := pod.KeyOf(s.UID()), map[string]int{}
		for _, c := range s.Containers {
			if !c.Spare() || c.Unkept {
				continue
			}
			i, ok := at[c.Name]
			if !ok {
				i = len(out)
				at[c.Name], out = i, append(out, nil)
			}
			out[i] = append(out[i], spare{k, c})
			total++
		}
	}
	return out, total
}

func (d *Dead) drop(list []spare) {
	ids := map[pod.Key][]string{}
	var order []pod.Key
	for _, s := range list {
		if ids[s.of] == nil {
			order = append(order, s.of)
		}
		ids[s.of] = append(ids[s.of], s.c.ID)
	}
	for _, k := range order {
		d.Drop(k, ids[k])
	}
}
