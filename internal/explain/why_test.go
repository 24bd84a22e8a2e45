package explain_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
)

func TestWhyNamesExactlyTheBlockersOldestFirst(t *testing.T) {
	r := explain.Why(at(90*time.Second), webSubject())
	var got []string
	for _, b := range r.Blocking {
		got = append(got, b.Stage)
	}
	require.Equal(t, []string{"image[setup]", "sandbox", "stop[old]", "image[web]", "volume[settings]"}, got)
	golden(t, "why.txt", r.Text())
	fits80(t, r.Text())
	golden(t, "why-message.txt", r.Message()+"\n")

	data, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	golden(t, "why.json", string(data)+"\n")
	var back explain.Report
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, r.Text(), back.Text(), "the report survives the way over the socket")
}

func TestWhyOneBlocker(t *testing.T) {
	now := at(time.Minute)
	held := func(e dag.Entry) []explain.Stage {
		g := &dag.Graph[int]{}
		a := g.Add(dag.Node[int]{ID: id("sandbox", ""), Key: e.Key, Owns: e.Owns, Class: e.Class})
		g.Add(dag.Node[int]{ID: id("container", "c"), Key: do("start"), Need: []dag.ID{a}})
		return explain.FromGraph(g, dag.Memo{
			a:                    e,
			id("container", "c"): {Key: do("start"), State: dag.Waiting, Since: t0, On: []dag.ID{a}},
		})
	}
	owner := explain.Work{Pod: "ns/other", Stage: "sandbox.stop", Since: at(50 * time.Second)}
	for _, c := range []struct {
		name string
		s    explain.Subject
		want string
	}{
		{
			"a hold with an end",
			explain.Subject{Stages: held(dag.Entry{Key: do("run"), State: dag.Held, Why: "crash loop", Until: at(80 * time.Second), Since: t0})},
			"sandbox: crash loop, for at most another 20.0s",
		},
		{
			"failed for good",
			explain.Subject{Stages: held(dag.Entry{Key: do("run"), State: dag.Failed, Attempt: 1, Err: errPull, Since: t0})},
			"sandbox: attempt 1 failed, not tried again until something changes, last error: ErrImagePull: " + errPull.Error(),
		},
		{
			"an object of another pod",
			explain.Subject{Stages: held(dag.Entry{Key: do("run"), State: dag.Queued, Owns: "name/x", Class: "sandbox", Since: t0}), Owners: map[string]explain.Work{"name/x": owner}},
			"sandbox: waits for name/x, which sandbox.stop of ns/other is changing (for 10.0s)",
		},
		{
			"an object whose owner is unknown",
			explain.Subject{Stages: held(dag.Entry{Key: do("run"), State: dag.Waiting, Why: "sandbox/s1", On: []dag.ID{id("sandbox.stop", "")}, Since: t0})},
			"sandbox: waits for sandbox/s1",
		},
		{"a stopped class", explain.Subject{
			Pod: "ns/p", Stages: held(dag.Entry{Key: do("run"), State: dag.Queued, Class: "sandbox", Since: t0}),
			Queues: []explain.Queue{{Class: "sandbox", Slots: 4, Stopped: true, Lost: []explain.Work{owner}, Waiting: []explain.Work{{Pod: "ns/p", Stage: "sandbox"}}}},
		}, "sandbox: number 1 in the queue of class sandbox, which starts nothing more: lost are sandbox.stop of ns/other (10.0s)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, explain.Why(now, c.s).Message())
			require.Equal(t, []string{"container[c]"}, explain.Why(now, c.s).Blocking[0].Blocks)
		})
	}
}

func TestWhyNothingBlocks(t *testing.T) {
	g := &dag.Graph[int]{}
	g.Add(dag.Node[int]{ID: id("observe", "")})
	r := explain.Why(t0, explain.Subject{Pod: "ns/p", Stages: explain.FromGraph(g, nil)})
	require.Empty(t, r.Blocking)
	require.Equal(t, "ns/p  1 of 1 stages done\n\nNothing is to be done, nothing is waited for.\n", r.Text())
}
