package metrics_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/metrics"
	"github.com/flowlet/flowlet/internal/pod"
)

func registry(t *testing.T) *prometheus.Registry {
	t.Helper()
	return prometheus.NewPedanticRegistry()
}

// holds compares the metrics of those names with text; of histograms only sum
// and count are written.
func holds(t *testing.T, r *prometheus.Registry, want string) {
	t.Helper()
	got := map[string]bool{}
	families, err := r.Gather()
	require.NoError(t, err)
	var all strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			line := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetHistogram() != nil:
				line += " " + time.Duration(m.GetHistogram().GetSampleSum()*1e9+0.5).Round(time.Microsecond).String() + "/" + itoa(m.GetHistogram().GetSampleCount())
			case m.GetGauge() != nil:
				line += " " + itoa(uint64(m.GetGauge().GetValue()))
			default:
				line += " " + itoa(uint64(m.GetCounter().GetValue()))
			}
			got[line] = true
			all.WriteString(line + "\n")
		}
	}
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			require.True(t, got[line], "no %q in\n%s", line, all.String())
		}
	}
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

func TestStages(t *testing.T) {
	r := registry(t)
	s, err := metrics.NewStages(r)
	require.NoError(t, err)
	t0 := time.Unix(1_700_000_000, 0)
	entry := func(state dag.State, at time.Duration, class string) dag.Entry {
		return dag.Entry{Key: dag.Key{Do: "x"}, State: state, Since: t0.Add(at), Class: class}
	}
	tell := func(id dag.ID, moves ...dag.Entry) {
		var from dag.Entry
		for _, to := range moves {
			s.Moved("u", id, from, to)
			from = to
		}
	}
	image := dag.ID{Kind: "image", Of: "r.example/x:1"}
	failed := entry(dag.Failed, 5*time.Second, "image/r.example")
	failed.Err = pod.WithReason("ErrImagePull", errors.New("no"))
	tell(image, entry(dag.Waiting, 0, ""), entry(dag.Queued, time.Second, "image/r.example"), entry(dag.Running, 3*time.Second, "image/r.example"), failed)
	tell(dag.ID{Kind: "image", Of: "b"}, entry(dag.Queued, 0, "image/other"))
	tell(dag.ID{Kind: "container", Of: "a"}, entry(dag.Running, 0, "container"), entry(dag.Done, time.Second, "container"))
	bad := entry(dag.Failed, time.Second, "container")
	bad.Err = pod.WithReason("RunContainerError", errors.New("no"))
	tell(dag.ID{Kind: "container", Of: "b"}, entry(dag.Running, 0, "container"), bad)
	tell(dag.ID{Kind: "sandbox"}, entry(dag.Running, 0, "sandbox"), entry(dag.Done, time.Second, "sandbox"))
	tell(dag.ID{Kind: "stop"}, entry(dag.Running, 0, "stop"), entry(dag.Lost, time.Minute, "stop"))
	tell(dag.ID{Kind: "volume"}, entry(dag.Running, 0, "mount"))
	holds(t, r, `
		flowlet_stage_duration_seconds{kind=image,outcome=failed} 2s/1
		flowlet_stage_duration_seconds{kind=stop,outcome=lost} 1m0s/1
		flowlet_stage_duration_seconds{kind=container,outcome=ok} 1s/1
		flowlet_stage_queue_seconds{class=image} 2s/1
		flowlet_stage_queue_depth{class=image} 1
		flowlet_stage_running{class=mount} 1
		flowlet_stage_running{class=image} 0
		flowlet_stage_lost{class=stop} 1
		kubelet_started_pods_total{} 1
		kubelet_started_pods_errors_total{} 0
		kubelet_started_containers_total{container_type=container} 1
		kubelet_started_containers_total{container_type=podsandbox} 1
		kubelet_started_containers_errors_total{code=RunContainerError,container_type=container} 1
	`)
	s.Moved("u", dag.ID{Kind: "volume"}, entry(dag.Running, 0, "mount"), dag.Entry{})
	holds(t, r, "flowlet_stage_running{class=mount} 0")
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t)
		c, err := metrics.NewCalls(r)
		require.NoError(t, err)
		for _, m := range []string{"RunPodSandbox", "ListPodSandbox", "UpdateContainerResources", "ImageFsInfo", "Version", "ReopenContainerLog"} {
			_, done := c.Call(t.Context(), m)
			time.Sleep(time.Second)
			done(nil)
		}
		_, done := c.Call(t.Context(), "PodSandboxStatus")
		done(errors.New("no"))
		holds(t, r, `
			kubelet_runtime_operations_total{operation_type=run_podsandbox} 1
			kubelet_runtime_operations_total{operation_type=list_podsandbox} 1
			kubelet_runtime_operations_total{operation_type=update_container} 1
			kubelet_runtime_operations_total{operation_type=image_fs_info} 1
			kubelet_runtime_operations_total{operation_type=reopen_container_log} 1
			kubelet_runtime_operations_errors_total{operation_type=podsandbox_status} 1
			kubelet_runtime_operations_duration_seconds{operation_type=version} 1s/1
		`)
	})
}

func TestStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t)
		s, err := metrics.NewStarts(r)
		require.NoError(t, err)
		j := journal.New(journal.Options{Ended: s.Ended})
		start := func(outcome string) {
			j.Begin("u", journal.Start, time.Time{})
			image, web := dag.ID{Kind: "image", Of: "i"}, dag.ID{Kind: "container", Of: "web"}
			e := func(state dag.State, on ...dag.ID) dag.Entry {
				return dag.Entry{Key: dag.Key{Do: "x"}, State: state, Since: time.Now(), On: on, Attempt: 1}
			}
			pull, wait := e(dag.Running), e(dag.Waiting, image)
			j.Moved("u", image, dag.Entry{}, pull)
			j.Moved("u", web, dag.Entry{}, wait)
			time.Sleep(3 * time.Second)
			j.Moved("u", image, pull, e(dag.Done))
			run := e(dag.Running)
			j.Moved("u", web, wait, run)
			time.Sleep(time.Second)
			j.Moved("u", web, run, e(dag.Done))
			time.Sleep(2 * time.Second)
			j.StartEnded("u", outcome)
		}
		start("ready")
		start("failed")
		holds(t, r, `
			kubelet_pod_start_duration_seconds{} 4s/1
			kubelet_pod_start_sli_duration_seconds{} 1s/1
			flowlet_pod_ready_seconds{} 6s/1
			flowlet_pod_start_critical_seconds{kind=image} 3s/1
			flowlet_pod_start_critical_seconds{kind=container} 1s/1
		`)

		// The call that starts the container is answered after the pod is ready.
		j.Begin("u", journal.Start, time.Time{})
		web := dag.ID{Kind: "container", Of: "web"}
		run := dag.Entry{Key: dag.Key{Do: "x"}, State: dag.Running, Since: time.Now(), Attempt: 1}
		j.Moved("u", web, dag.Entry{}, run)
		time.Sleep(2 * time.Second)
		j.StartEnded("u", "ready")
		time.Sleep(time.Second)
		j.Moved("u", web, run, dag.Entry{State: dag.Done, Since: time.Now(), Attempt: 1})
		holds(t, r, `
			kubelet_pod_start_duration_seconds{} 6s/2
			kubelet_pod_start_sli_duration_seconds{} 3s/2
			flowlet_pod_ready_seconds{} 8s/2
			flowlet_pod_start_critical_seconds{kind=image} 3s/1
			flowlet_pod_start_critical_seconds{kind=container} 3s/2
		`)
	})
}

func TestRelistAndPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t)
		m, err := metrics.NewRelist(r)
		require.NoError(t, err)
		p, err := metrics.NewPipeline(r, func() int { return 7 })
		require.NoError(t, err)
		began := time.Now()
		time.Sleep(time.Second)
		m.Relisted(began, time.Time{})
		m.Relisted(time.Now(), began)
		p.Event("file")
		p.Stepped(time.Millisecond, 2*time.Millisecond)
		holds(t, r, `
			kubelet_pleg_relist_duration_seconds{} 1s/2
			kubelet_pleg_relist_interval_seconds{} 1s/1
			kubelet_pleg_last_seen_seconds{} `+itoa(uint64(time.Now().Unix()))+`
			flowlet_pipeline_events_total{source=file} 1
			flowlet_pipeline_step_seconds{} 1ms/1
			flowlet_pipeline_wait_seconds{} 2ms/1
			flowlet_pipeline_dirty{} 7
		`)
	})
}

func TestNode(t *testing.T) {
	r := registry(t)
	require.NoError(t, metrics.NewNode(r, "n1", func() metrics.Counts {
		return metrics.Counts{RunningPods: 3, Containers: map[string]int{"running": 4, "exited": 1}, Desired: metrics.Split{API: 2, Static: 1}, Mirror: 1}
	}))
	holds(t, r, `
		kubelet_node_name{node=n1} 1
		kubelet_running_pods{} 3
		kubelet_running_containers{container_state=running} 4
		kubelet_running_containers{container_state=exited} 1
		kubelet_desired_pods{static=} 2
		kubelet_desired_pods{static=true} 1
		kubelet_mirror_pods{} 1
	`)
	problems, err := testutil.GatherAndLint(r)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestRegisteredTwiceIsAnError(t *testing.T) {
	r := registry(t)
	_, err := metrics.NewCalls(r)
	require.NoError(t, err)
	_, err = metrics.NewCalls(r)
	require.ErrorContains(t, err, "registering metrics")
}
