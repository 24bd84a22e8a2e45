package pod_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/pod"
)

var t0 = time.Unix(1_000_000, 0)

func at(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }

func newPod(change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}}
	p.Spec.RestartPolicy = v1.RestartPolicyAlways
	p.Spec.Containers = []v1.Container{{Name: "web", Image: "i"}}
	for _, c := range change {
		c(p)
	}
	return p
}

func spec(p *v1.Pod) pod.SpecSet {
	return pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: t0}}
}

func fold(s *pod.State, changes ...pod.Change) *pod.State {
	for _, c := range changes {
		s, _ = pod.Fold(s, c)
	}
	if s == nil {
		return &pod.State{} // nothing was shown
	}
	return s
}

// truth is what really happened to one pod in the runtime.
type truth struct {
	sandbox   string
	from, end float64 // of the sandbox
	lives     []life
}

type life struct {
	id                              string
	attempt                         uint32
	created, started, exited, gone_ float64
	code                            int32
}

func drawTruth(t *rapid.T) truth {
	tr := truth{sandbox: "s0", from: 1}
	now := 1.0
	step := func(name string) float64 {
		now += float64(rapid.IntRange(1, 20).Draw(t, name))
		return now
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
		l := life{id: fmt.Sprintf("c%d", i), attempt: uint32(i), code: int32(i)}
		l.created, l.started, l.exited = step("created"), step("started"), step("exited")
		l.gone_ = l.exited + float64(rapid.IntRange(1, 60).Draw(t, "gone"))
		tr.lives = append(tr.lives, l)
	}
	tr.end = now + 100
	return tr
}

func (tr truth) sandboxAt(x float64) []pod.Sandbox {
	if x < tr.from {
		return nil
	}
	return []pod.Sandbox{{ID: tr.sandbox, CreatedAt: at(tr.from), Ready: x < tr.end, IPs: []string{"10.0.0.1"}, Detailed: true}}
}

// containersAt shows the containers as a look at that time does. A row without
// detail has no times and no exit.
func (tr truth) containersAt(x float64, detailed bool) []pod.Container {
	var out []pod.Container
	for _, l := range tr.lives {
		if x < l.created || x >= l.gone_ {
			continue
		}
		c := pod.Container{ID: l.id, Name: "web", Attempt: l.attempt, SandboxID: tr.sandbox, Hash: "h", CreatedAt: at(l.created), Detailed: detailed}
		switch {
		case x >= l.exited:
			c.State = pod.Exited
			if detailed {
				c.StartedAt = at(l.started)
				c.Exit = pod.Exit{Code: l.code, Reason: "Error", FinishedAt: at(l.exited)}
			}
		case x >= l.started:
			c.State = pod.Running
			if detailed {
				c.StartedAt = at(l.started)
			}
		}
		out = append(out, c)
	}
	return out
}

// look is a look at the whole pod that read the runtime at x, somewhere
// between its begin and its end.
func (tr truth) look(x, before, after float64, detailed bool) pod.Observed {
	return pod.Observed{
		Began: at(x - before), Ended: at(x + after), Sandboxes: tr.sandboxAt(x), Containers: tr.containersAt(x, detailed),
	}
}

func drawLooks(t *rapid.T, tr truth) []pod.Change {
	var looks []pod.Change
	for range rapid.IntRange(1, 12).Draw(t, "looks") {
		x := rapid.Float64Range(0, tr.end+50).Draw(t, "at")
		width := rapid.Float64Range(0.001, 30)
		o := tr.look(x, width.Draw(t, "before"), width.Draw(t, "after"), rapid.Bool().Draw(t, "detailed"))
		o.Partial = rapid.Bool().Draw(t, "partial")
		if o.Partial { // an event: it is made in the moment it tells of
			o.Began, o.Ended = at(x), at(x)
		}
		looks = append(looks, o)
	}
	return looks
}

func drawOrder(t *rapid.T, looks []pod.Change) []pod.Change {
	out := rapid.Permutation(looks).Draw(t, "order")
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(looks)-1), 0, 4).Draw(t, "again") {
		out = append(out, looks[i])
	}
	return out
}

var facts = cmp.Options{
	cmpopts.IgnoreFields(pod.Container{}, "Seen"),
	cmpopts.IgnoreFields(pod.Sandbox{}, "Seen"),
	cmpopts.EquateEmpty(),
}

func TestOrderAgeAndRepetitionOfObservationsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTruth(t)
		looks := drawLooks(t, tr)
		last := tr.look(tr.end+200, 1, 1, true)
		last.Sandboxes = tr.sandboxAt(tr.end + 200)

		inOrder := slices.Clone(looks)
		slices.SortStableFunc(inOrder, func(a, b pod.Change) int {
			return a.(pod.Observed).Ended.Compare(b.(pod.Observed).Ended)
		})
		want := fold(fold(nil, inOrder...), last)
		got := fold(fold(nil, drawOrder(t, looks)...), last)

		if diff := cmp.Diff(want.Sandboxes, got.Sandboxes, facts); diff != "" {
			t.Fatalf("sandboxes (in order -, drawn order +):\n%s", diff)
		}
		for _, c := range got.Containers {
			if !c.Gone {
				t.Fatalf("%s is still there after a look that did not show it", c.ID)
			}
		}
	})
}

func TestWhatIsThereIsNeverTakenForGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTruth(t)
		for i := range tr.lives {
			tr.lives[i].gone_ = 1e6 // nothing is removed
		}
		looks := drawLooks(t, tr)
		s := fold(nil, drawOrder(t, looks)...)
		for _, c := range s.Containers {
			if c.Gone {
				t.Fatalf("%s exists and was taken for gone", c.ID)
			}
		}
	})
}

func TestStateOfAContainerOnlyMovesUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTruth(t)
		var s *pod.State
		exits := map[string]pod.Exit{}
		for _, look := range drawOrder(t, drawLooks(t, tr)) {
			old := s
			s = fold(s, look)
			if old == nil {
				continue
			}
			for _, was := range old.Containers {
				i := slices.IndexFunc(s.Containers, func(c pod.Container) bool { return c.ID == was.ID })
				if i < 0 {
					continue // trimmed
				}
				is := s.Containers[i]
				if is.State < was.State || (was.Gone && !is.Gone) {
					t.Fatalf("%s moved back from %v (gone %v) to %v (gone %v)", is.ID, was.State, was.Gone, is.State, is.Gone)
				}
				if first, ok := exits[is.ID]; ok && first != is.Exit {
					t.Fatalf("the first exit of %s changed from %v to %v", is.ID, first, is.Exit)
				}
				if is.State == pod.Exited && is.Detailed {
					exits[is.ID] = is.Exit
				}
			}
		}
	})
}

func TestRepetitionTellsNothingNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTruth(t)
		looks := drawLooks(t, tr)
		s := fold(nil, append([]pod.Change{spec(newPod())}, looks...)...)
		before := *s
		again, changed := pod.Fold(s, looks[len(looks)-1])
		if changed || again != s {
			t.Fatalf("the same look a second time changed version %d to %d", before.Version, again.Version)
		}
	})
}

func TestFoldLeavesTheOldStateAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTruth(t)
		var s *pod.State
		for _, look := range drawOrder(t, drawLooks(t, tr)) {
			if s != nil {
				copied := *s
				copied.Sandboxes, copied.Containers = slices.Clone(s.Sandboxes), slices.Clone(s.Containers)
				fold(s, look)
				if diff := cmp.Diff(copied, *s); diff != "" {
					t.Fatalf("the old state changed:\n%s", diff)
				}
			}
			s = fold(s, look)
		}
	})
}

func TestAbsence(t *testing.T) {
	running := pod.Container{ID: "c", Name: "web", State: pod.Running, Detailed: true}
	none := func(began float64) pod.Observed { return pod.Observed{Began: at(began), Ended: at(began + 1)} }
	seen := pod.Observed{Partial: true, Began: at(5), Ended: at(5), Containers: []pod.Container{running}}
	shown := func(began float64) pod.Observed {
		return pod.Observed{Began: at(began), Ended: at(began + 1), Containers: []pod.Container{running}}
	}
	for name, tc := range map[string]struct {
		changes []pod.Change
		gone    bool
	}{
		"a look that began after it was seen":           {[]pod.Change{seen, none(6)}, true},
		"a look that began before it was seen":          {[]pod.Change{seen, none(4)}, false},
		"a look that began before the last write ended": {[]pod.Change{seen, pod.Wrote{At: at(7)}, none(6)}, false},
		"a look that began after the last write ended":  {[]pod.Change{seen, pod.Wrote{At: at(7)}, none(8)}, true},
		"a partial look": {[]pod.Change{seen, pod.Observed{Partial: true, Began: at(9)}}, false},
		"seen again by an old event after it was found to be gone": {[]pod.Change{seen, none(6), seen}, true},
		"seen again by a look that began before":                   {[]pod.Change{seen, none(6), shown(6.5)}, true},
		"seen again by a fresh look":                               {[]pod.Change{seen, none(6), shown(7.5)}, false},
		"not seen by an old look after that":                       {[]pod.Change{seen, none(6), shown(9), none(8)}, false},
		"not seen by a fresh look after that":                      {[]pod.Change{seen, none(6), shown(9), none(11)}, true},
		"removed, and shown by a look that began before": {
			[]pod.Change{seen, pod.ContainerRemoved{ID: "c"}, pod.Wrote{At: at(7)}, shown(6)}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := fold(nil, tc.changes...).Newest("web")
			require.True(t, ok)
			require.Equal(t, tc.gone, c.Gone)
		})
	}
}

func TestUnknownStateNeedsAFreshLook(t *testing.T) {
	row := func(unknown bool, began float64, partial bool) pod.Observed {
		return pod.Observed{
			Began: at(began), Ended: at(began), Partial: partial,
			Containers: []pod.Container{{ID: "c", Name: "web", State: pod.Running, Unknown: unknown}},
		}
	}
	s := fold(nil, row(false, 1, false), row(true, 2, true))
	c, _ := s.Newest("web")
	require.False(t, c.Unknown, "an event says nothing of it")
	c, _ = fold(s, row(true, 3, false)).Newest("web")
	require.True(t, c.Unknown)
	c, _ = fold(s, row(true, 3, false), row(false, 1, true)).Newest("web")
	require.True(t, c.Unknown, "an old event does not clear it")
	c, _ = fold(s, row(true, 3, false), row(false, 4, false)).Newest("web")
	require.False(t, c.Unknown)
}

func TestAVagueExitDecidesNothing(t *testing.T) {
	vague := pod.Observed{Began: at(1), Ended: at(2), Containers: []pod.Container{{ID: "c", Name: "web", State: pod.Exited}}}
	p := newPod(func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever })
	for name, s := range map[string]*pod.State{
		"spec first": fold(nil, spec(p), vague),
		"look first": fold(nil, vague, spec(p)),
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, pod.Active, s.Phase)
			require.Equal(t, []string{"c"}, s.Unsure, "it has to be looked at")
			require.Empty(t, s.Crashes)
			_, changed := pod.Fold(s, vague)
			require.False(t, changed)

			clear := vague
			clear.Containers = []pod.Container{{ID: "c", Name: "web", State: pod.Exited, Detailed: true, Exit: pod.Exit{Code: 3}}}
			s = fold(s, clear)
			require.Empty(t, s.Unsure)
			require.Equal(t, pod.Finishing, s.Phase)
		})
	}
	s := fold(nil, spec(p), vague, pod.SpecGone{Source: pod.SourceFile, At: at(3)}, vague)
	require.Equal(t, pod.Deleting, s.Phase)
}

func TestExitsCountAlikeHoweverTheRuntimeListsThem(t *testing.T) {
	var list []pod.Container
	for i := range 3 {
		list = append(list, pod.Container{
			ID: fmt.Sprint(i), Name: "web", Attempt: uint32(i), Hash: "h", State: pod.Exited, Detailed: true,
			StartedAt: at(float64(10 * i)), Exit: pod.Exit{Code: 1, FinishedAt: at(float64(10*i + 1))},
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		s := fold(nil, pod.Observed{Began: at(100), Containers: rapid.Permutation(list).Draw(t, "order")})
		if got := s.Crashes["web"]; got != (pod.Crash{ID: "2", Hash: "h", Exits: 3}) {
			t.Fatalf("crash %+v", got)
		}
	})
}

func TestGoneSandboxesAreForgotten(t *testing.T) {
	var s *pod.State
	for i := range 10 {
		s = fold(s, pod.Observed{Began: at(float64(2 * i)), Ended: at(float64(2*i) + 1), Sandboxes: []pod.Sandbox{{ID: fmt.Sprint(i), Attempt: uint32(i)}}})
	}
	require.Len(t, s.Sandboxes, 3)
	require.Equal(t, "9", s.Sandboxes[0].ID)
}

func TestASandboxThatWasMissedIsUsableAgain(t *testing.T) {
	look := func(began float64, list ...pod.Sandbox) pod.Change {
		return pod.Observed{Began: at(began), Ended: at(began + 1), Sandboxes: list}
	}
	ready := pod.Sandbox{ID: "s", Ready: true, IPs: []string{"10.0.0.1"}, Detailed: true}
	s := fold(nil, spec(newPod()), look(1, ready), look(3))
	_, ok := s.Sandbox()
	require.False(t, ok)
	sb, ok := fold(s, look(5, ready)).Sandbox()
	require.True(t, ok)
	require.True(t, sb.Ready)
	sb, ok = fold(s, look(5, pod.Sandbox{ID: "s"})).Sandbox()
	require.True(t, ok)
	require.False(t, sb.Ready)
}

func TestVolumesOfEarlierSpecsAreKnown(t *testing.T) {
	with := func(names ...string) pod.Change {
		return spec(newPod(func(p *v1.Pod) {
			for _, n := range names {
				p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: n})
			}
		}))
	}
	s := fold(nil, with("a", "b"), with("b", "c"), with("c"), with("a"))
	require.Equal(t, []string{"a", "b", "c"}, s.Volumes)
	s = fold(s, pod.SpecGone{Source: pod.SourceFile, At: at(1)}, with("x"), pod.Gone{At: at(2)})
	require.Empty(t, s.Volumes, "another life")
}

func TestAddressesOutliveTheAgent(t *testing.T) {
	s := fold(nil, spec(newPod()), pod.Observed{Began: at(1), Ended: at(2), Sandboxes: []pod.Sandbox{{ID: "s", IPs: []string{"10.0.0.1"}}}})
	again := fold(nil, pod.Restored{Record: pod.RecordOf(s)}, spec(newPod()))
	require.Equal(t, []string{"10.0.0.1"}, again.IPs)
	require.Equal(t, []string{"10.0.0.1"}, pod.RecordOf(again).IPs)
}
