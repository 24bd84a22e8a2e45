package status_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/status"
)

// told collects events as "reason path: message".
type told []string

func (t *told) Event(_ *v1.Pod, path, eventType, reason, message string) {
	*t = append(*t, eventType+" "+reason+" "+path+": "+message)
}

func TestMovesAreToldOnce(t *testing.T) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	base, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: p}})
	rejected, _ := pod.Fold(base, pod.Rejected{Reason: "OutOfcpu", Message: "too much"})
	second, _ := pod.Fold(base, pod.Observed{Sandboxes: []pod.Sandbox{{ID: "s"}}})
	judged := func(reason string) *pod.State {
		s, _ := pod.Fold(base, pod.Judged{Verdict: pod.Verdict{Reason: reason, Message: "over"}})
		return s
	}
	broken := errors.New("broken")
	failed := dag.Entry{State: dag.Failed, Err: broken, Attempt: 1, Until: time.Unix(9, 0)}
	for want, tt := range map[string]struct {
		id    dag.ID
		entry dag.Entry
		state *pod.State
	}{
		"Warning OutOfcpu : too much":    {state: rejected},
		"Warning Evicted : over":         {state: judged("Evicted")},
		"Normal DeadlineExceeded : over": {state: judged("DeadlineExceeded")},
		"Warning BackOff spec.containers{c}: Back-off restarting failed container c in pod p_ns(u)": {
			id: dag.ID{Kind: "container", Of: "c"}, entry: dag.Entry{State: dag.Held, Why: "crash-loop back-off 10s"},
		},
		"Warning NetworkNotReady : network is not ready: no plugin": {
			id: dag.ID{Kind: "sandbox"}, entry: dag.Entry{State: dag.Held, Why: "network is not ready: no plugin"},
		},
		"Normal SandboxChanged : Pod sandbox changed, it will be killed and re-created.": {
			id: dag.ID{Kind: "sandbox"}, entry: dag.Entry{State: dag.Running, Attempt: 1}, state: second,
		},
		`Normal BackOff spec.containers{c}: Back-off pulling image "i"`:                    {id: dag.ID{Kind: "image", Of: "i"}, entry: failed},
		`Warning FailedMount : MountVolume.SetUp failed for volume "v" : broken`:           {id: dag.ID{Kind: "volume", Of: "v"}, entry: failed},
		"Warning FailedCreatePodContainer : unable to ensure pod container exists: broken": {id: dag.ID{Kind: "cgroup"}, entry: failed},
		"Warning FailedKillPod : error killing pod: broken":                                {id: dag.ID{Kind: "stop", Of: "c"}, entry: failed},
	} {
		t.Run(want, func(t *testing.T) {
			state := tt.state
			if state == nil {
				state = base
			}
			before, after := status.Look{State: base}, status.Look{State: state, Memo: dag.Memo{tt.id: tt.entry}}
			var got told
			status.Tell(&got, before, after)
			require.Equal(t, told{want}, got)
			got = nil
			status.Tell(&got, after, after)
			require.Empty(t, got)
		})
	}
}
