package explain_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/pod"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file, and holds it to 80 columns.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func fits80(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "line %q", line)
	}
}

var t0 = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// at is d after the beginning.
func at(d time.Duration) time.Time { return t0.Add(d) }

func id(kind, of string) dag.ID { return dag.ID{Kind: kind, Of: of} }

func do(what string) dag.Key { return dag.Key{Do: what, In: 1} }

// webGraph is a pod with two containers, two images, a volume and an init container.
func webGraph() *dag.Graph[int] {
	g := &dag.Graph[int]{}
	g.Add(dag.Node[int]{ID: id("observe", "")})
	admit := g.Add(dag.Node[int]{ID: id("admit", ""), Key: do("admit"), Class: "admit"})
	cgroup := g.Add(dag.Node[int]{ID: id("cgroup", ""), Need: []dag.ID{admit}, Key: do("ensure"), Class: "cgroup"})
	dirs := g.Add(dag.Node[int]{ID: id("dirs", ""), Need: []dag.ID{admit}, Key: do("ensure"), Class: "cgroup"})
	vol := g.Add(dag.Node[int]{ID: id("volume", "settings"), Need: []dag.ID{dirs}, Key: do("mount config map web-settings"), Class: "mount"})
	setup := g.Add(dag.Node[int]{ID: id("image", "setup"), Key: do("pull registry.example/setup:1"), Class: "image/registry.example"})
	web := g.Add(dag.Node[int]{ID: id("image", "web"), Key: do("pull registry.example/team/web:2.4.1"), Class: "image/registry.example"})
	box := g.Add(dag.Node[int]{
		ID: id("sandbox", ""), Need: []dag.ID{cgroup, dirs}, Key: do("run attempt 0"), Class: "sandbox", Owns: "sandbox/web", Atomic: true,
		Hold: dag.Hold{Why: "the runtime's network is not ready: cni plugin not initialized"},
	})
	init := g.Add(dag.Node[int]{ID: id("init", "setup"), Need: []dag.ID{box, setup}, Key: do("start attempt 0 in sandbox s1"), Class: "container", Owns: "container/setup", Atomic: true})
	hook := g.Add(dag.Node[int]{ID: id("container", "proxy"), Need: []dag.ID{box, setup, init}, Key: do("start attempt 0 in sandbox s1"), Class: "container", Owns: "container/proxy", Atomic: true})
	g.Add(dag.Node[int]{ID: id("container", "web"), Need: []dag.ID{box, web, vol, init}, After: []dag.ID{hook}, Key: do("start attempt 0 in sandbox s1"), Class: "container", Owns: "container/web", Atomic: true})
	g.Add(dag.Node[int]{ID: id("status", ""), Key: do("publish"), Class: "status"})
	return g
}

var errPull = pod.WithReason("ErrImagePull", errors.New("PullImage registry.example/team/web:2.4.1: dial tcp 192.0.2.7:443: connect: connection refused"))

// webMemo is the pod 90 s after its beginning: all four kinds of blockers at once.
func webMemo() dag.Memo {
	done := func(key string, since time.Duration) dag.Entry {
		return dag.Entry{Key: do(key), State: dag.Done, Since: at(since), Attempt: 1}
	}
	return dag.Memo{
		id("observe", ""):    {State: dag.Done, Since: at(0)},
		id("admit", ""):      done("admit", time.Millisecond),
		id("cgroup", ""):     done("ensure", 3*time.Millisecond),
		id("dirs", ""):       done("ensure", 2*time.Millisecond),
		id("image", "setup"): {Key: do("pull registry.example/setup:1"), State: dag.Queued, Since: at(2 * time.Millisecond), Class: "image/registry.example"},
		id("image", "web"):   {Key: do("pull registry.example/team/web:2.4.1"), State: dag.Failed, Since: at(71 * time.Second), Until: at(111 * time.Second), Attempt: 3, Err: errPull, Class: "image/registry.example"},
		id("sandbox", ""):    {Key: do("run attempt 0"), State: dag.Held, Since: at(3 * time.Millisecond), Why: "the runtime's network is not ready: cni plugin not initialized", Class: "sandbox", Owns: "sandbox/web", Atomic: true},
		id("volume", "settings"): {
			Key: do("mount config map web-settings"), State: dag.Running, Since: at(80 * time.Second), Until: at(200 * time.Second), Attempt: 5,
			Err: pod.WithReason("FailedMount", errors.New("config map web-settings in namespace shop: not found")), Class: "mount",
		},
		id("init", "setup"):      {Key: do("start attempt 0 in sandbox s1"), State: dag.Waiting, Since: at(2 * time.Millisecond), On: []dag.ID{id("sandbox", ""), id("image", "setup")}, Class: "container"},
		id("container", "proxy"): {Key: do("start attempt 0 in sandbox s1"), State: dag.Waiting, Since: at(2 * time.Millisecond), On: []dag.ID{id("sandbox", ""), id("image", "setup"), id("init", "setup")}, Class: "container"},
		id("container", "web"):   {Key: do("start attempt 0 in sandbox s1"), State: dag.Waiting, Since: at(2 * time.Millisecond), On: []dag.ID{id("sandbox", ""), id("image", "web"), id("volume", "settings"), id("init", "setup")}, Class: "container"},
		id("status", ""):         {Key: do("publish"), State: dag.Done, Since: at(71 * time.Second), Attempt: 4},
		id("stop", "old"):        {Key: do("stop: spec changed"), State: dag.Lost, Since: at(30 * time.Second), Attempt: 1, Owns: "container/old", Class: "teardown", Atomic: true},
	}
}

func webSubject() explain.Subject {
	return explain.Subject{
		Pod: "shop/web", Phase: "running", Stages: explain.FromGraph(webGraph(), webMemo()),
		Queues: []explain.Queue{{
			Class: "image/registry.example", Slots: 2,
			Running: []explain.Work{{Pod: "shop/db", Stage: "image[db]", Since: at(-40 * time.Second)}, {Pod: "ops/backup", Stage: "image[tool]", Since: at(85 * time.Second)}},
			Waiting: []explain.Work{{Pod: "ops/cron", Stage: "image[job]", Since: at(-time.Second)}, {Pod: "shop/web", Stage: "image[setup]", Since: at(2 * time.Millisecond)}},
		}},
	}
}
