package journal_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
)

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.Options{})
		l := live(j, "u1")
		j.Event(l.k, journal.Event{At: time.Now(), Source: "file", Change: "wanted", Cause: 1})
		l.fold(pod.SpecSet{Spec: spec("u1", "web")})
		l.move(id("container", "web"), dag.Entry{Key: dag.Key{Do: "start"}, State: dag.Waiting, On: []dag.ID{id("sandbox", "")}})
		l.state(id("image", "web"), dag.Running)
		ctx, from := j.Context(t.Context(), l.k, id("image", "web")), time.Now()
		time.Sleep(time.Second)
		j.Called(ctx, journal.Call{Method: "PullImage", From: from, To: time.Now(), Err: "refused"})
		l.move(id("image", "web"), dag.Entry{Key: dag.Key{Do: "pull"}, State: dag.Failed, Attempt: 1, Err: errors.New("refused")})
		l.move(id("sandbox", ""), dag.Entry{Key: dag.Key{Do: "run"}, State: dag.Held, Why: "no network"})
		j.StartEnded(l.k, "failed")
		delete(l.memo, id("container", "web"))
		j.Moved(l.k, id("image", "web"), l.memo[id("image", "web")], dag.Entry{})
		delete(l.memo, id("image", "web"))
		l.forget()
		want := `shop/web  u1
2000-01-01 (UTC)
00:00:00.000 event                            file: wanted
00:00:00.000 waiting   container[web]         for sandbox
00:00:00.000 running   image[web]             do image[web]
00:00:01.000 failed    image[web]             attempt 1: refused
00:00:01.000 held      sandbox                no network
00:00:01.000 call      image[web]             PullImage took 1s: refused
00:00:01.000 forgotten image[web]
00:00:01.000 forgotten sandbox
`
		if diff := cmp.Diff(want, journal.LogOf(j.Episodes(l.k)).Text()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
