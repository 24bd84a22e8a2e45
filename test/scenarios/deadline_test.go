package scenarios_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/dag"
)

func activeDeadline(seconds int64) part {
	return func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds }
}

// judgement returns the node's verdict on a pod, as its status tells it.
func (n *node) judgement(name string) (phase v1.PodPhase, reason, message string) {
	v, ok := n.view(name)
	if !ok || v.Status == nil {
		return "", "", ""
	}
	return v.Status.Phase, v.Status.Reason, v.Status.Message
}

func TestActiveDeadlineEndsAPodExactlyThen(t *testing.T) {
	for name, down := range map[string]struct{ kill, start time.Duration }{
		"":                                     {},
		"the agent is killed before":           {kill: 5 * time.Second, start: 6 * time.Second},
		"the agent is killed while it stops":   {kill: 20*time.Second + 500*time.Millisecond, start: 21 * time.Second},
		"the agent was not there at that time": {kill: 15 * time.Second, start: 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.pass(2 * time.Second)
				n.write("s", manifest("s", activeDeadline(20), sidecar("log"), container("web", "app:1"),
					does(`{"web":{"term":{"after":"3s","code":0}},"log":{"term":{"after":"1s"}}}`)))
				n.untilRuns(3*time.Second, "s", "web", "log")
				v, _ := n.view("s")
				began := v.State.StartTime
				due := began.Add(20 * time.Second)
				if down.kill != 0 {
					n.pass(time.Until(began.Add(down.kill)))
					n.kill()
					n.pass(time.Until(began.Add(down.start)))
					if due.Before(time.Now()) {
						due = time.Now()
					}
					n.start()
				}
				n.pass(time.Until(began.Add(time.Minute)))
				phase, reason, message := n.judgement("s")
				require.Equal(n, v1.PodFailed, phase)
				require.Equal(n, "DeadlineExceeded", reason)
				require.Equal(n, "Pod was active on the node longer than the specified deadline", message)
				stops := n.calls("s", "StopContainer")
				require.Equal(n, "web", stops[0].Container)
				if down.kill < 20*time.Second {
					require.Equal(n, due, stops[0].Start)
				}
				require.Equal(n, "log", stops[len(stops)-1].Container, "the sidecar after it")
				require.Len(n, n.starts("s", "web"), 1, "what was ended is not started again")
				require.Len(n, n.starts("s", "log"), 1)
			})
		})
	}
}

func TestActiveDeadlineCountsTheTimeOfPulls(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: map[string]crisim.Image{"app:1": {Pull: time.Hour}}}}, func(n *node) {
		n.write("s", manifest("s", activeDeadline(60)))
		n.pass(2 * time.Second)
		v, _ := n.view("s")
		clock := v.Memo[stage("deadline")]
		require.Equal(n, dag.Held, clock.State)
		require.Equal(n, v.State.StartTime.Add(time.Minute), clock.Until, "it can be seen coming")
		n.until(time.Minute, "it has failed", func() bool { return n.phase("s") == v1.PodFailed })
		require.Equal(n, v.State.StartTime.Add(time.Minute).Truncate(time.Second), time.Now().Truncate(time.Second))
		require.Empty(n, n.calls("s", "CreateContainer"))
	})
}
