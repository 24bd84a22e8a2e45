package journal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
)

// What is told comes back as it was, but for Owns and the type of the error.
func TestEntriesComeBack(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "a", "b", "image/registry.example", "start attempt 3"})
	stage := rapid.Custom(func(t *rapid.T) dag.ID { return id(word.Draw(t, "kind"), word.Draw(t, "of")) })
	entry := rapid.Custom(func(t *rapid.T) dag.Entry {
		e := dag.Entry{
			Key: dag.Key{Do: word.Draw(t, "do"), In: rapid.Uint64().Draw(t, "in")}, State: dag.State(rapid.IntRange(0, int(dag.Done)).Draw(t, "state")),
			Since: time.Unix(1, rapid.Int64Range(0, 1e12).Draw(t, "since")), Attempt: rapid.IntRange(0, 60_000).Draw(t, "attempt"),
			Why: word.Draw(t, "why"), Class: word.Draw(t, "class"), Atomic: rapid.Bool().Draw(t, "atomic"), OnTime: rapid.Bool().Draw(t, "on time"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "on") {
			e.On = append(e.On, stage.Draw(t, "id"))
		}
		if rapid.Bool().Draw(t, "until") {
			e.Until = e.Since.Add(time.Second)
		}
		if rapid.Bool().Draw(t, "failed") {
			e.Err = pod.WithReason(word.Draw(t, "reason"), errors.New("cause"))
		}
		return e
	})
	rapid.Check(t, func(rt *rapid.T) {
		j := journal.New(journal.Options{Tail: 64})
		var want []dag.Entry
		var ids []dag.ID
		for range rapid.IntRange(0, 30).Draw(rt, "moves") {
			ids, want = append(ids, stage.Draw(rt, "stage")), append(want, entry.Draw(rt, "entry"))
			j.Moved("u", ids[len(ids)-1], dag.Entry{}, want[len(want)-1])
		}
		var got []journal.Move
		if all := j.Episodes("u"); len(all) > 0 {
			got = all[0].Moves
		}
		require.Len(rt, got, len(want))
		for i, m := range got {
			require.Equal(rt, ids[i], m.ID)
			require.Equal(rt, want[i].Err == nil, m.Entry.Err == nil)
			if m.Entry.Err != nil {
				require.Equal(rt, want[i].Err.Error(), m.Entry.Err.Error())
				require.Equal(rt, pod.ReasonOf(want[i].Err), pod.ReasonOf(m.Entry.Err))
			}
			want[i].Err, m.Entry.Err = nil, nil
			require.Equal(rt, want[i], m.Entry)
		}
	})
}
