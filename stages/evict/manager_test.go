package evict_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/usage"
	"github.com/flowlet/flowlet/stages/evict"
)

// world is a node with scripted figures, on which a verdict is carried out at once.
type world struct {
	node      usage.Node
	broken    error
	pods      map[pod.Key]*pod.State
	uses      map[types.UID]*usage.Pod
	judged    []string
	verdicts  map[string]pod.Verdict
	told      []string
	reclaimed []string
	dead      int   // containers that have ended
	images    int64 // bytes of images that nothing uses
	slow      bool  // pods do not go by themselves
}

func (w *world) Node(context.Context) (usage.Node, error) {
	if w.broken != nil {
		return usage.Node{}, w.broken
	}
	w.node.At = time.Now()
	return w.node, nil
}

func (w *world) Pods(_ context.Context, pods []*v1.Pod) (map[types.UID]*usage.Pod, error) {
	out := map[types.UID]*usage.Pod{}
	for _, p := range pods {
		out[p.UID] = w.uses[p.UID]
	}
	return out, nil
}

func (w *world) Processes(context.Context) (map[types.UID]int64, error) {
	out := map[types.UID]int64{}
	for uid, u := range w.uses {
		out[uid] = u.Processes
	}
	return out, nil
}

func (w *world) Containers() int {
	asked := w.dead
	w.dead = 0
	return asked
}

func (w *world) Images(context.Context) error {
	w.reclaimed = append(w.reclaimed, "images")
	w.node.Images.Bytes.Available += w.images
	w.node.Nodefs.Bytes.Available += w.images
	w.images = 0
	return nil
}

func (w *world) judge(k pod.Key, v pod.Verdict) {
	s := w.pods[k]
	w.judged = append(w.judged, s.Pod().Name)
	w.verdicts[s.Pod().Name] = v
	next := *s
	next.Verdict, next.Phase = &v, pod.Finishing
	w.pods[k] = &next
	if !w.slow {
		w.finish(k)
	}
}

func (w *world) finish(k pod.Key) {
	next := *w.pods[k]
	next.Phase = pod.Finished
	w.pods[k] = &next
	w.node.Memory.Available += w.uses[k.UID()].Memory()
}

func (w *world) add(p *v1.Pod, u *usage.Pod) {
	w.pods[pod.KeyOf(p.UID)] = &pod.State{Identity: pod.Identity{UID: p.UID}, Phase: pod.Active, Spec: &pod.Spec{Pod: p}}
	w.uses[p.UID] = u
}

func newWorld() *world {
	one := usage.Filesystem{Device: 1, Bytes: usage.Amount{Available: 500 * mi, Capacity: 1000 * mi}}
	return &world{
		node: usage.Node{Memory: usage.Amount{Available: 500 * mi, Capacity: 1000 * mi}, Nodefs: one, Images: one, Layers: one},
		pods: map[pod.Key]*pod.State{}, uses: map[types.UID]*usage.Pod{}, verdicts: map[string]pod.Verdict{},
	}
}

func (w *world) manager(t *testing.T, s evict.Settings) *evict.Manager {
	t.Helper()
	thresholds, err := s.Thresholds()
	require.NoError(t, err)
	return evict.New(evict.Config{
		Thresholds: thresholds, Transition: 5 * time.Minute, MaxGrace: 20 * time.Second, LocalLimits: true, Measure: w, Reclaim: w,
		Pods:  func() []*pod.State { return slices.Collect(maps.Values(w.pods)) },
		Judge: w.judge, Tell: func(reason, message string) { w.told = append(w.told, reason+": "+message) },
	})
}

// rounds plays n rounds, ten seconds apart.
func rounds(t *testing.T, m *evict.Manager, n int) {
	t.Helper()
	for range n {
		require.NoError(t, m.Round(context.Background()))
		time.Sleep(10 * time.Second)
	}
}

var hardMemory = evict.Settings{Hard: map[string]string{"memory.available": "100Mi"}}

func TestOnePodPerRoundUntilThereIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(aPod("small"), uses(10*mi, 0, 0, 0))
		w.add(aPod("middle"), uses(60*mi, 0, 0, 0))
		w.add(aPod("large"), uses(70*mi, 0, 0, 0))
		w.add(aPod("system", priority(2_000_000_000)), uses(500*mi, 0, 0, 0))
		w.add(aPod("static", static), uses(500*mi, 0, 0, 0))
		m := w.manager(t, hardMemory)
		rounds(t, m, 2)
		require.Empty(t, w.judged)
		w.node.Memory.Available = 20 * mi
		rounds(t, m, 1)
		require.Equal(t, []string{"large"}, w.judged)
		require.True(t, m.Under(v1.NodeMemoryPressure))
		rounds(t, m, 5)
		require.Equal(t, []string{"large", "middle"}, w.judged, "150Mi are left then")
		require.Equal(t, "EvictionThresholdMet: Attempting to reclaim memory", w.told[0])
		v := w.verdicts["large"]
		require.Equal(t, "Evicted", v.Reason)
		require.Equal(t, "The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi. "+
			"Container web was using 70Mi, request is 0, has larger consumption of memory. ", v.Message)
		require.Equal(t, time.Second, *v.Grace)
		require.True(t, v.Disruption)
		require.Empty(t, m.State().Did, "it is over")
		require.Empty(t, w.reclaimed, "images are not in memory")
	})
}

func TestTheNextPodIsEvictedWhenTheLastIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.slow = true
		w.add(aPod("a"), uses(20*mi, 0, 0, 0))
		w.add(aPod("b"), uses(10*mi, 0, 0, 0))
		w.node.Memory.Available = 50 * mi
		m := w.manager(t, hardMemory)
		rounds(t, m, 3)
		require.Equal(t, []string{"a"}, w.judged)
		require.Contains(t, m.State().Did, "waits for the pod that was evicted last")
		rounds(t, m, 1)
		require.Equal(t, []string{"a", "b"}, w.judged, "for half a minute at most")
	})
}

func TestSoftThresholdLeavesPodsTheirGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		short := int64(5)
		w.add(aPod("short", func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &short }), uses(90*mi, 0, 0, 0))
		w.add(aPod("long"), uses(80*mi, 0, 0, 0))
		w.node.Memory.Available = 10 * mi
		m := w.manager(t, evict.Settings{Soft: map[string]string{"memory.available": "200Mi"}, SoftGrace: map[string]string{"memory.available": "30s"}})
		rounds(t, m, 3)
		require.Empty(t, w.judged)
		rounds(t, m, 2)
		require.Equal(t, []string{"short", "long"}, w.judged)
		require.Equal(t, 5*time.Second, *w.verdicts["short"].Grace)
		require.Equal(t, 20*time.Second, *w.verdicts["long"].Grace, "evictionMaxPodGracePeriod")
	})
}

func TestWhatNoPodNeedsGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(aPod("full"), uses(0, 300*mi, 0, 0))
		w.images = 90 * mi
		w.node.Nodefs.Bytes.Available, w.node.Images.Bytes.Available = 20*mi, 20*mi
		m := w.manager(t, evict.Settings{
			Hard:           map[string]string{"nodefs.available": "10%"},
			MinimumReclaim: map[string]string{"nodefs.available": "5Mi"},
		})
		rounds(t, m, 1)
		require.Equal(t, []string{"images"}, w.reclaimed)
		require.Empty(t, w.judged)
		w.node.Nodefs.Bytes.Available = 20 * mi
		rounds(t, m, 1)
		require.Equal(t, []string{"full"}, w.judged)
		require.Contains(t, w.verdicts["full"].Message, "The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 20Mi. Container web was using 300Mi")
		require.True(t, m.Under(v1.NodeDiskPressure))
	})
}

// What containers that have ended took is free only once they are gone, so the
// first round of a shortage waits. Others that end meanwhile hold up nothing.
func TestContainersThatHaveEndedGoBeforeAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(aPod("full"), uses(0, 300*mi, 0, 0))
		m := w.manager(t, evict.Settings{Hard: map[string]string{"nodefs.available": "10%"}})
		short := func() {
			w.node.Nodefs.Bytes.Available, w.node.Images.Bytes.Available = 20*mi, 20*mi
			w.dead = 3
			rounds(t, m, 1)
		}
		short()
		require.Empty(t, w.judged)
		require.Equal(t, "nodefs.available: waits for 3 containers that have ended to be removed", m.State().Did)
		short()
		require.Equal(t, []string{"full"}, w.judged)
	})
}

func TestPodsOverALimitGoAtOnceAndAllOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(aPod("a", emptyDir("", "1Mi"), static), uses(0, 0, 0, 2*mi))
		w.add(aPod("b", limits("1Mi")), uses(0, 2*mi, 0, 0))
		w.add(aPod("fine", emptyDir("", "9Mi")), uses(0, 0, 0, 2*mi))
		w.add(aPod("system", emptyDir("", "1Mi"), priority(2_000_001_000)), uses(0, 0, 0, 2*mi))
		m := w.manager(t, hardMemory)
		rounds(t, m, 2)
		slices.Sort(w.judged)
		require.Equal(t, []string{"a", "b"}, w.judged)
		require.Equal(t, time.Second, *w.verdicts["a"].Grace)
		require.False(t, w.verdicts["a"].Disruption, "it is the pod's own doing")
		require.Empty(t, w.told)
		m.LocalLimits = false
		w.add(aPod("late", emptyDir("", "1Mi")), uses(0, 0, 0, 2*mi))
		rounds(t, m, 1)
		require.Len(t, w.judged, 2, "localStorageCapacityIsolation is off")
	})
}

func TestWhenNothingMayBeEvictedItSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(aPod("system", priority(2_000_000_000)), uses(900*mi, 0, 0, 0))
		w.node.Memory.Available = 10 * mi
		m := w.manager(t, hardMemory)
		rounds(t, m, 2)
		require.Empty(t, w.judged)
		require.Equal(t, "memory.available: 10Mi left, less than 100Mi, and no pod may be evicted", m.State().Did)
	})
}

func TestNodeThatCannotBeMeasuredEvictsNobody(t *testing.T) {
	w := newWorld()
	w.add(aPod("p"), uses(900*mi, 0, 0, 0))
	w.node.Memory.Available, w.broken = 0, errors.New("no figures")
	m := w.manager(t, hardMemory)
	require.ErrorContains(t, m.Round(context.Background()), "no figures")
	require.Empty(t, w.judged)
	require.Zero(t, m.State().At)
}
