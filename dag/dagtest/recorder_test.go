package dagtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

func TestRecorderFindsBreaches(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s dag.State, seconds int) dag.Entry {
		return dag.Entry{State: s, Key: dag.Key{Do: "x"}, Since: t0.Add(time.Duration(seconds) * time.Second)}
	}
	var none dag.Entry
	tests := map[string]struct {
		moves [][2]dag.Entry
		want  string
	}{
		"a life": {moves: [][2]dag.Entry{
			{none, at(dag.Waiting, 0)},
			{at(dag.Waiting, 0), at(dag.Queued, 1)},
			{at(dag.Queued, 1), at(dag.Running, 1)},
			{at(dag.Running, 1), at(dag.Lost, 3)},
			{at(dag.Lost, 3), at(dag.Done, 9)},
			{at(dag.Done, 9), none},
		}},
		"a gap":             {moves: [][2]dag.Entry{{none, at(dag.Queued, 0)}, {at(dag.Queued, 1), at(dag.Running, 2)}}, want: "a gap"},
		"a move left out":   {moves: [][2]dag.Entry{{none, at(dag.Queued, 0)}, {at(dag.Running, 0), at(dag.Done, 2)}}, want: "a gap"},
		"time goes back":    {moves: [][2]dag.Entry{{none, at(dag.Queued, 5)}, {at(dag.Queued, 5), at(dag.Running, 4)}}, want: "time went back"},
		"nothing moves":     {moves: [][2]dag.Entry{{none, at(dag.Queued, 5)}, {at(dag.Queued, 5), at(dag.Queued, 5)}}, want: "nothing moved"},
		"runs from nowhere": {moves: [][2]dag.Entry{{none, at(dag.Waiting, 0)}, {at(dag.Waiting, 0), at(dag.Running, 1)}}, want: "no way leads there"},
		"fails unrun":       {moves: [][2]dag.Entry{{none, at(dag.Queued, 0)}, {at(dag.Queued, 0), at(dag.Failed, 1)}}, want: "no way leads there"},
		"forgotten in flight": {moves: [][2]dag.Entry{
			{none, at(dag.Queued, 0)}, {at(dag.Queued, 0), at(dag.Running, 1)}, {at(dag.Running, 1), none},
		}, want: "forgotten in flight"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var r dagtest.Recorder[string]
			for _, m := range tt.moves {
				r.Moved("k", dag.ID{Kind: "a"}, m[0], m[1])
			}
			if tt.want == "" {
				require.Empty(t, r.Breach())
				return
			}
			require.Contains(t, r.Breach(), tt.want)
		})
	}
}
