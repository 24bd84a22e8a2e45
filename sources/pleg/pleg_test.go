package pleg_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/pleg"
)

// store folds what the source emits, as the pipeline does.
type store struct {
	mu     sync.Mutex
	pods   map[pod.Key]*pod.State
	emits  map[pod.Key]int
	topics []pipeline.Event[pod.Key, pod.Change]
	synced time.Time
}

func newStore() *store { return &store{pods: map[pod.Key]*pod.State{}, emits: map[pod.Key]int{}} }

func (s *store) emit(ev pipeline.Event[pod.Key, pod.Change]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch ev.Topic {
	case "":
		s.emits[ev.Key]++
		s.pods[ev.Key], _ = pod.Fold(s.pods[ev.Key], ev.Change)
	case pipeline.Synced(pleg.Name):
		s.synced = time.Now()
	default:
		s.topics = append(s.topics, ev)
	}
}

func (s *store) known() []pod.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := []pod.Key{pod.ChoreKey("status")}
	for k := range s.pods {
		keys = append(keys, k)
	}
	return keys
}

func (s *store) state(k pod.Key) *pod.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[k]
}

func (s *store) want(uid string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "ns", UID: types.UID(uid)}}
	p.Spec.Containers = []v1.Container{{Name: "web"}}
	s.emit(pipeline.Event[pod.Key, pod.Change]{
		Key: pod.Key(uid), Change: pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: time.Now()}},
	})
}

func (s *store) isSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.synced.IsZero()
}

func (s *store) lastRuntime() pod.RuntimeStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topics[len(s.topics)-1].Change.(pod.RuntimeStatus)
}

// begin runs the source until end is called.
func begin(t *testing.T, f *fake, s *store, change ...func(*pleg.Config)) (src *pleg.Source, end func()) {
	t.Helper()
	cfg := pleg.Config{Runtime: f, Known: s.known, State: s.state}
	for _, c := range change {
		c(&cfg)
	}
	src = pleg.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- src.Run(ctx, s.emit) }()
	return src, func() {
		cancel()
		require.NoError(t, <-done)
		f.senders.Wait()
	}
}

func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// story is what happens in the runtime; it takes about 20 s.
func story(f *fake) {
	f.run("a", "sa")
	later(300 * time.Millisecond)
	f.create("sa", "a0", "web", 0)
	later(10 * time.Millisecond)
	f.start("a0")
	later(3 * time.Second)
	f.exit("a0", 3)
	later(100 * time.Millisecond)
	f.create("sa", "a1", "web", 1)
	f.start("a1")
	f.run("b", "sb")
	f.create("sb", "b0", "web", 0)
	f.start("b0")
	later(5 * time.Second)
	f.exit("b0", 0)
	f.stop("sb")
	later(7 * time.Second)
	f.remove("b0")
	f.removeSandbox("sb")
	later(5 * time.Second)
}

func TestTheSameFactsByEveryWay(t *testing.T) {
	type event = *runtimeapi.ContainerEventResponse
	seed := 0
	for name, set := range map[string]func(*fake, *pleg.Config){
		"lists only":         func(_ *fake, c *pleg.Config) { c.SkipEvents = true },
		"events unsupported": func(f *fake, _ *pleg.Config) { f.noEvents = true },
		"events, rare lists": func(_ *fake, c *pleg.Config) { c.SlowRelist = time.Hour },
		"both":               func(*fake, *pleg.Config) {},
		"events come late": func(f *fake, _ *pleg.Config) {
			f.distort = func(ev event, send func(event)) { f.after(4*time.Second, func() { send(ev) }) }
		},
		"events change places": func(f *fake, _ *pleg.Config) {
			f.distort = func(ev event, send func(event)) {
				seed++
				f.after(time.Duration(seed*7%5)*time.Second, func() { send(ev) })
			}
		},
		"events come twice": func(f *fake, _ *pleg.Config) {
			f.distort = func(ev event, send func(event)) {
				send(ev)
				f.after(9*time.Second, func() { send(ev) })
			}
		},
		"every other event is lost": func(f *fake, _ *pleg.Config) {
			f.distort = func(ev event, send func(event)) {
				if seed++; seed%2 == 0 {
					send(ev)
				}
			}
		},
		"all events are lost": func(f *fake, _ *pleg.Config) { f.distort = func(event, func(event)) {} },
		"events say nothing": func(f *fake, _ *pleg.Config) {
			f.distort = func(ev event, send func(event)) {
				send(&runtimeapi.ContainerEventResponse{ContainerId: ev.ContainerId, ContainerEventType: ev.ContainerEventType, CreatedAt: ev.CreatedAt})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, s := newFake(), newStore()
				f.run("c", "sc")
				f.create("sc", "c0", "web", 0)
				f.start("c0")
				later(time.Minute)
				_, end := begin(t, f, s, func(c *pleg.Config) { set(f, c) })
				later(100 * time.Millisecond)
				require.True(t, s.isSynced())
				require.Equal(t, pod.Running, s.state("c").Containers[0].State)
				story(f)
				later(40 * time.Second)
				end()
				a, b, c := s.state("a"), s.state("b"), s.state("c")

				ignore := cmp.Options{
					cmpopts.IgnoreFields(pod.Container{}, "Seen", "CreatedAt", "StartedAt"),
					cmpopts.IgnoreFields(pod.Exit{}, "FinishedAt"),
				}
				require.Empty(t, cmp.Diff([]pod.Container{
					{ID: "a1", Name: "web", Attempt: 1, SandboxID: "sa", State: pod.Running, Detailed: true},
					{ID: "a0", Name: "web", SandboxID: "sa", State: pod.Exited, Detailed: true, Exit: pod.Exit{Code: 3, Reason: "Error"}},
				}, a.Containers, ignore))
				require.Equal(t, []string{"10.0.0.1"}, a.Sandboxes[0].IPs)
				require.True(t, a.Sandboxes[0].Ready)
				require.Equal(t, pod.Identity{Name: "a", Namespace: "ns", UID: "a", Source: "file"}, a.Identity)
				require.False(t, b != nil && b.HasRemains(), "all of b was removed: %+v", b)
				require.Equal(t, pod.Running, c.Containers[0].State)
				require.Equal(t, "c0", c.Containers[0].ID)
			})
		})
	}
}

func TestEventsTellAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		src, end := begin(t, f, s)
		defer end()
		later(10 * time.Second)
		h := src.Health()
		require.True(t, h.Events)
		require.Equal(t, 10*time.Second, time.Since(h.Since))
		lists := f.count("ListPodSandbox")
		f.run("a", "sa")
		f.create("sa", "a0", "web", 0)
		f.start("a0")
		synctest.Wait()
		require.Equal(t, pod.Running, s.state("a").Containers[0].State)
		f.exit("a0", 7)
		synctest.Wait()
		require.Equal(t, int32(7), s.state("a").Containers[0].Exit.Code)
		later(time.Second)
		f.remove("a0")
		f.removeSandbox("sa")
		later(readTime)
		require.False(t, s.state("a").HasRemains())
		require.LessOrEqual(t, f.count("ListPodSandbox")-lists, 3, "a look for each hint, no relist")
		require.Zero(t, f.count("status a0"))
	})
}

func TestListsAreSlowOnlyWhileTheStreamIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		src, end := begin(t, f, s)
		defer end()
		later(5 * time.Minute)
		require.InDelta(t, 11, f.count("ListPodSandbox"), 1)

		f.crash()
		later(10 * time.Second)
		require.GreaterOrEqual(t, f.count("ListPodSandbox"), 20)
		h := src.Health()
		require.False(t, h.Events)
		require.Contains(t, h.Why, "connection re")
		require.Error(t, h.ListErr)
		require.Error(t, h.StatusErr)
		require.Equal(t, pod.RuntimeStatus{
			NetworkReady: true, Reason: "ContainerRuntimeUnreachable", Message: "rpc error: code = Unavailable desc = connection refused",
			Since: s.lastRuntime().Since, Features: pod.RuntimeFeatures{Known: true},
		}, s.lastRuntime())

		f.do(func() { f.down = false })
		later(1100 * time.Millisecond)
		require.NoError(t, src.Health().ListErr)
		require.True(t, s.lastRuntime().Ready, "asked at once when it was back")
		later(2 * time.Second)
		require.True(t, src.Health().Events, "opened again at once")
		before := f.count("ListPodSandbox")
		later(25 * time.Second)
		require.LessOrEqual(t, f.count("ListPodSandbox")-before, 1)
	})
}

func TestARuntimeThatIsAwayAtStartIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		f.run("a", "sa")
		f.down = true
		_, end := begin(t, f, s)
		defer end()
		later(10 * time.Minute)
		require.False(t, s.isSynced())
		f.do(func() { f.down = false })
		later(1100 * time.Millisecond)
		require.True(t, s.isSynced())
		require.True(t, s.state("a").Sandboxes[0].Detailed)
	})
}

func TestAHungStatusKeepsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		for i := range 30 {
			f.run(fmt.Sprintf("p%02d", i), fmt.Sprintf("s%02d", i))
		}
		f.run("hung", "shung")
		f.hang["shung"] = true
		src, end := begin(t, f, s, func(c *pleg.Config) { c.SkipEvents = true })
		defer end()
		later(time.Second)
		for i := range 30 {
			require.True(t, s.state(pod.Key(fmt.Sprintf("p%02d", i))).Sandboxes[0].Detailed)
		}
		require.Nil(t, s.state("hung"))
		require.False(t, s.isSynced(), "one pod is not told yet")
		later(10 * time.Second)
		require.True(t, s.isSynced(), "its row has to do")
		sb := s.state("hung").Sandboxes[0]
		require.True(t, sb.Ready)
		require.False(t, sb.Detailed)

		f.run("new", "snew")
		later(1200 * time.Millisecond)
		require.True(t, s.state("new").Sandboxes[0].Detailed)
		_, err := src.Look(t.Context(), "hung")
		require.ErrorContains(t, err, "pod hung")

		f.do(func() { f.hang["shung"] = false })
		later(time.Minute)
		require.True(t, s.state("hung").Sandboxes[0].Detailed)
		require.LessOrEqual(t, f.mostAtOne, 11)
	})
}

func TestAStatusThatFailsIsNotAskedForAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		f.run("a", "sa")
		f.create("sa", "a0", "web", 0)
		f.start("a0")
		f.exit("a0", 1)
		f.broken["a0"] = true
		s.want("a")
		_, end := begin(t, f, s, func(c *pleg.Config) { c.SkipEvents = true })
		defer end()
		later(10 * time.Minute)
		require.Less(t, f.count("status a0"), 20)
		require.Equal(t, []string{"a0"}, s.state("a").Unsure, "nobody knows how it ended")
		f.do(func() { f.broken["a0"] = false })
		later(time.Minute)
		require.Equal(t, int32(1), s.state("a").Containers[0].Exit.Code)
		require.Empty(t, s.state("a").Unsure)
	})
}

func TestAnIdleListTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		f.run("a", "sa")
		f.create("sa", "a0", "web", 0)
		f.start("a0")
		_, end := begin(t, f, s, func(c *pleg.Config) { c.SkipEvents = true })
		defer end()
		later(10 * time.Second)
		emits, reads := s.emits["a"], f.count("status a0")
		later(time.Minute)
		require.Equal(t, emits, s.emits["a"])
		require.Equal(t, reads, f.count("status a0"))
	})
}

// BC-39: thousands of dead containers of pods that nobody knows are listed,
// not read one by one.
func TestDeadContainersOfUnknownPodsAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		for i := range 500 {
			uid := fmt.Sprintf("dead%d", i)
			f.run(uid, "s"+uid)
			for j := range 10 {
				id := fmt.Sprintf("%s-%d", uid, j)
				f.create("s"+uid, id, "web", uint32(j))
				f.exit(id, 1)
			}
			f.stop("s" + uid)
		}
		f.run("a", "sa")
		f.create("sa", "a0", "web", 0)
		f.start("a0")
		_, end := begin(t, f, s, func(c *pleg.Config) { c.SkipEvents = true })
		defer end()
		later(100 * time.Millisecond)
		require.True(t, s.isSynced())
		require.True(t, s.state("a").Containers[0].Detailed)
		require.Len(t, s.state("dead7").Containers, 10)
		reads := func() (n int) {
			f.do(func() {
				for m, c := range f.calls {
					if m != "ListPodSandbox" && m != "ListContainers" && m != "Status" {
						n += c
					}
				}
			})
			return n
		}
		require.Equal(t, 2, reads())
		later(10 * time.Second)
		require.Equal(t, 2, reads())

		s.want("dead7")
		require.Len(t, s.state("dead7").Unsure, 10)
		later(2 * time.Second)
		require.Equal(t, 13, reads(), "now somebody wants to know")
		require.Empty(t, s.state("dead7").Unsure)
		require.Equal(t, int32(1), s.state("dead7").Containers[0].Exit.Code)
	})
}

func TestAnEventThatDoesNotShowItsObjectAsksForALook(t *testing.T) {
	for name, distort := range map[string]func(*runtimeapi.ContainerEventResponse){
		"not in it": func(ev *runtimeapi.ContainerEventResponse) { ev.ContainersStatuses = nil },
		"in a state that is not known": func(ev *runtimeapi.ContainerEventResponse) {
			for _, c := range ev.ContainersStatuses {
				c.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, s := newFake(), newStore()
				f.distort = func(ev *runtimeapi.ContainerEventResponse, send func(*runtimeapi.ContainerEventResponse)) {
					distort(ev)
					send(ev)
				}
				_, end := begin(t, f, s)
				defer end()
				later(5 * time.Second)
				f.run("a", "sa")
				f.create("sa", "a0", "web", 0)
				f.start("a0")
				later(5 * readTime)
				c := s.state("a").Containers[0]
				require.Equal(t, pod.Running, c.State)
				require.False(t, c.Unknown)
			})
		})
	}
}

func TestReplayedEventsBringNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		f.replay = true
		f.run("old", "sold")
		f.create("sold", "old0", "web", 0)
		f.start("old0")
		f.do(func() { clear(f.sandboxes); clear(f.containers) }) // gone without an event
		later(time.Minute)
		_, end := begin(t, f, s)
		defer end()
		later(10 * time.Second)
		require.Nil(t, s.state("old"))
		f.run("a", "sa")
		later(time.Second)
		f.crash()
		f.do(func() { f.down = false })
		later(10 * time.Second)
		require.Nil(t, s.state("old"))
		require.True(t, s.state("a").Sandboxes[0].Ready)
	})
}

func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		f.run("a", "sa")
		f.create("sa", "a0", "web", 0)
		f.start("a0")
		f.run("b", "sb")
		src := pleg.New(pleg.Config{Runtime: f, Known: s.known, State: s.state})
		began := time.Now()
		facts, err := src.Look(t.Context(), "a")
		require.NoError(t, err)
		o := facts[0].(pod.Observed)
		require.Equal(t, began, o.Began)
		require.Equal(t, began.Add(2*readTime), o.Ended)
		require.False(t, o.Partial)
		require.Len(t, o.Sandboxes, 1)
		require.True(t, o.Containers[0].Detailed)
		require.Equal(t, "sa", o.Containers[0].SandboxID)
		require.Equal(t, types.UID("a"), o.Identity.UID)
		require.Zero(t, f.count("status sb"))

		s.emit(pipeline.Event[pod.Key, pod.Change]{Key: "a", Change: o})
		_, err = src.Look(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 1, f.count("status a0"), "known in detail")

		facts, err = src.Look(t.Context(), "none")
		require.NoError(t, err)
		require.Empty(t, facts[0].(pod.Observed).Sandboxes)
		f.down = true
		_, err = src.Look(t.Context(), "a")
		require.ErrorContains(t, err, "connection refused")
	})
}

func TestOneObjectThatCannotBeReadSpoilsNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		f.run("a", "sa")
		for _, id := range []string{"a0", "a1"} {
			f.create("sa", id, id, 0)
			f.start(id)
		}
		f.broken["a0"] = true
		src := pleg.New(pleg.Config{Runtime: f, Known: s.known, State: s.state})
		facts, err := src.Look(t.Context(), "a")
		require.ErrorContains(t, err, "container a0: ")
		s.emit(pipeline.Event[pod.Key, pod.Change]{Key: "a", Change: facts[0]})
		detailed := map[string]bool{}
		for _, c := range s.state("a").Containers {
			detailed[c.ID] = c.Detailed
			require.Equal(t, pod.Running, c.State)
		}
		require.Equal(t, map[string]bool{"a0": false, "a1": true}, detailed)
	})
}

func TestRuntimeStatusIsToldWhenItChanges(t *testing.T) { // BC-44
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(), newStore()
		f.conditions[1] = &runtimeapi.RuntimeCondition{Type: "NetworkReady", Reason: "NetworkPluginNotReady", Message: "cni config uninitialized"}
		_, end := begin(t, f, s)
		defer end()
		synctest.Wait()
		start := time.Now()
		require.Equal(t, pod.RuntimeStatus{Ready: true, Reason: "NetworkPluginNotReady", Message: "cni config uninitialized", Since: start, Features: pod.RuntimeFeatures{Known: true}}, s.lastRuntime())
		later(time.Minute)
		require.Len(t, s.topics, 2)
		f.do(func() { f.conditions = f.conditions[:1] })
		later(5 * time.Second)
		require.Equal(t, "the runtime says nothing about NetworkReady", s.lastRuntime().Message)
		require.Equal(t, start, s.lastRuntime().Since)
		f.do(func() {
			f.conditions = append(slices.Clone(f.conditions), &runtimeapi.RuntimeCondition{Type: "NetworkReady", Status: true})
		})
		later(5 * time.Second)
		require.Equal(t, pod.RuntimeStatus{Ready: true, NetworkReady: true, Since: time.Now(), Features: pod.RuntimeFeatures{Known: true}}, s.lastRuntime())
		require.Equal(t, []string{"runtime-ready", "net-ready"}, []string{s.topics[4].Topic, s.topics[5].Topic})

		since := s.lastRuntime().Since
		f.do(func() {
			f.handlers = []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}, {Name: "kata"}}
		})
		later(5 * time.Second)
		require.Equal(t, map[string]pod.HandlerFeatures{"": {UserNamespaces: true}, "kata": {}}, s.lastRuntime().Features.Handlers)
		require.Equal(t, since, s.lastRuntime().Since, "it is as ready as before")
	})
}
