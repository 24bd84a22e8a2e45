package container_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
)

// times that tests do not know.
var times = cmp.Options{cmpopts.IgnoreFields(pod.Observed{}, "Began", "Ended"), cmpopts.IgnoreFields(pod.Container{}, "CreatedAt")}

var identity = pod.Identity{Name: "web", Namespace: "prod", UID: "u-1"}

func saw(c pod.Container) pod.Facts {
	return pod.Facts{pod.Observed{Identity: identity, Partial: true, Containers: []pod.Container{c}}}
}

// bare is what is known of the container without the runtime's status.
var bare = pod.Container{ID: "c1", Name: "app", Attempt: 3, SandboxID: "s1", Hash: "hash-app"}

const (
	created = "spec.containers{app} Normal Created: Container created"
	started = "spec.containers{app} Normal Started: Container started"
)

func TestStart(t *testing.T) {
	for existing, calls := range map[string][]string{
		"":   {"create app", "start c1", "status c1"},
		"c1": {"start c1", "status c1"},
	} {
		r, st := newRig(nil), start(nil)
		st.Existing = existing
		facts, err := r.Start(t.Context(), st)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(saw(pod.Container{
			ID: "c1", Name: "app", SandboxID: "s1", State: pod.Running, StartedAt: time.Unix(0, 6), Detailed: true,
		}), facts, times))
		require.Equal(t, calls, r.rt.calls)
		if existing == "" {
			require.Equal(t, []string{created, started}, r.ev.lines)
		} else {
			require.Equal(t, []string{started}, r.ev.lines)
		}
	}
}

func TestRemovedWhileItWasMade(t *testing.T) {
	r, st := newRig(nil), start(nil)
	st.Removed = func() bool { return len(r.rt.calls) > 0 }
	facts, err := r.Start(t.Context(), st)
	require.ErrorContains(t, err, "its pod was removed")
	require.Empty(t, cmp.Diff(saw(bare), facts, times))
	require.Equal(t, []string{"create app"}, r.rt.calls)
}

func TestCreateFails(t *testing.T) {
	gone := pod.Facts{pod.ImageGone{Ref: "img:1"}}
	for name, tc := range map[string]struct {
		err       error
		facts     pod.Facts
		uncertain bool
		soon      bool
		silent    bool
	}{
		"refused":              {err: status.Error(codes.InvalidArgument, "bad mount")},
		"failed":               {err: status.Error(codes.Unknown, "no space"), uncertain: true},
		"out of time":          {err: status.Error(codes.DeadlineExceeded, "slow"), uncertain: true},
		"runtime away":         {err: status.Error(codes.Unavailable, "eof"), uncertain: true, soon: true},
		"name taken":           {err: status.Error(codes.AlreadyExists, "x"), uncertain: true, silent: true},
		"name taken, in words": {err: status.Error(codes.Unknown, `failed to reserve container name "a": name "a" is reserved for "b"`), uncertain: true, silent: true},
		"image gone":           {err: status.Error(codes.NotFound, `failed to resolve image "sha256:1": not found`), facts: gone},
		"image gone, CRI-O":    {err: status.Error(codes.Unknown, "locating image: image not known"), facts: gone, uncertain: true},
		"sandbox gone":         {err: status.Error(codes.NotFound, `failed to find sandbox id "s1": not found`)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r.rt.fail["create"] = tc.err
			facts, err := r.Start(t.Context(), start(nil))
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, "CreateContainerError", pod.ReasonOf(err))
			require.Equal(t, tc.facts, facts)
			require.Equal(t, tc.uncertain, uncertain(err))
			require.Equal(t, tc.soon, soon(err))
			require.Equal(t, []string{"create app"}, r.rt.calls)
			if tc.silent {
				require.Empty(t, r.ev.lines)
			} else {
				require.Equal(t, []string{"spec.containers{app} Warning Failed: Error: " + err.Error()}, r.ev.lines)
			}
		})
	}
}

func TestStartContainerFails(t *testing.T) {
	died := &runtimeapi.ContainerStatus{
		Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "app", Attempt: 3}, State: runtimeapi.ContainerState_CONTAINER_EXITED,
		ExitCode: 128, Reason: "StartError", Message: "exec: no such file", FinishedAt: 9,
	}
	dead := saw(pod.Container{
		ID: "c1", Name: "app", Attempt: 3, SandboxID: "s1", State: pod.Exited, Detailed: true,
		Exit: pod.Exit{Code: 128, Reason: "StartError", Message: "exec: no such file", FinishedAt: time.Unix(0, 9)},
	})
	idle := &runtimeapi.ContainerStatus{Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "app", Attempt: 3}}
	waiting := saw(pod.Container{ID: "c1", Name: "app", Attempt: 3, SandboxID: "s1", Detailed: true})
	failed := status.Error(codes.Unknown, "cannot start c1: exec: no such file")
	for name, tc := range map[string]struct {
		err, unread error
		status      *runtimeapi.ContainerStatus
		facts       pod.Facts
		uncertain   bool
		calls       int
	}{
		"and the runtime counts it as an exit": {err: failed, status: died, facts: dead, calls: 3},
		"and it stays created":                 {err: failed, status: idle, facts: waiting, uncertain: true, calls: 3},
		"refused, it stays created":            {err: status.Error(codes.FailedPrecondition, "c1"), status: idle, facts: waiting, calls: 3},
		"and it cannot be read":                {err: failed, unread: errors.New("x"), facts: saw(bare), uncertain: true, calls: 3},
		"and it is not there":                  {err: status.Error(codes.NotFound, "c1"), facts: pod.Facts{pod.ContainerRemoved{ID: "c1"}}, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r.rt.fail["start"], r.rt.fail["status"], r.rt.status = tc.err, tc.unread, tc.status
			facts, err := r.Start(t.Context(), start(nil))
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, "RunContainerError", pod.ReasonOf(err))
			require.Empty(t, cmp.Diff(tc.facts, facts, times))
			require.Equal(t, tc.uncertain, uncertain(err))
			require.Len(t, r.rt.calls, tc.calls)
			if tc.calls == 3 {
				require.Len(t, r.ev.lines, 2)
				require.True(t, strings.HasPrefix(r.ev.lines[1], "spec.containers{app} Warning Failed: Error: "))
				require.NotContains(t, r.ev.lines[1], "c1", "nobody knows containers by their ID")
				require.Contains(t, r.ev.lines[1], "app")
			}
		})
	}
}

func TestEventsNameTheContainerInPlaceOfItsID(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	r, st := newRig(nil), start(nil)
	st.Existing = id
	r.rt.fail["start"] = errors.New("StartContainer " + id[:13] + ": task " + id + " failed, code 012345")
	_, err := r.Start(t.Context(), st)
	require.ErrorContains(t, err, id)
	require.Equal(t, []string{"spec.containers{app} Warning Failed: Error: StartContainer app: task app failed, code 012345"}, r.ev.lines)
}

func TestStartedButNotRead(t *testing.T) {
	r := newRig(nil)
	r.rt.fail["status"] = status.Error(codes.Unavailable, "eof")
	facts, err := r.Start(t.Context(), start(nil))
	require.True(t, uncertain(err), "somebody has to look")
	require.True(t, soon(err))
	running := bare
	running.State = pod.Running
	require.Empty(t, cmp.Diff(saw(running), facts, times))
	require.Equal(t, []string{created, started}, r.ev.lines)
}

func TestLinkToTheLog(t *testing.T) {
	links, logs := filepath.Join(t.TempDir(), "containers"), t.TempDir()
	begin := func(change func(st *container.Start)) {
		r := newRig(func(s *container.Settings) { s.LinkDir = links })
		st := start(nil)
		st.Sandbox = &runtimeapi.PodSandboxConfig{LogDirectory: logs}
		if change != nil {
			change(&st)
		}
		_, err := r.Start(t.Context(), st)
		require.NoError(t, err)
	}
	begin(nil)
	require.NoDirExists(t, links, "no log, no link")

	log := write(t, filepath.Join(logs, "app", "3.log"), "")
	begin(nil)
	begin(nil) // the link is there
	target, err := os.Readlink(filepath.Join(links, "web_prod_app-c1.log"))
	require.NoError(t, err)
	require.Equal(t, log, target)

	begin(func(st *container.Start) { st.State.Identity.Name = strings.Repeat("n", 300) })
	require.FileExists(t, filepath.Join(links, strings.Repeat("n", 251)+".log"))
}

func TestStop(t *testing.T) {
	running := pod.Container{ID: "c1", Name: "app", SandboxID: "s1", State: pod.Running, StartedAt: time.Unix(0, 6)}
	exited := &runtimeapi.ContainerStatus{
		Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, State: runtimeapi.ContainerState_CONTAINER_EXITED,
		StartedAt: 6, FinishedAt: 9, ExitCode: 143, Reason: "Error",
	}
	ended := saw(pod.Container{
		ID: "c1", Name: "app", SandboxID: "s1", State: pod.Exited, StartedAt: time.Unix(0, 6), Detailed: true,
		Exit: pod.Exit{Code: 143, Reason: "Error", FinishedAt: time.Unix(0, 9)},
	})
	vague := saw(pod.Container{ID: "c1", Name: "app", SandboxID: "s1", State: pod.Exited, StartedAt: time.Unix(0, 6)})
	gone := status.Error(codes.NotFound, "c1")
	for name, tc := range map[string]struct {
		grace          time.Duration
		why            string
		stopErr, stErr error
		status         *runtimeapi.ContainerStatus
		facts          pod.Facts
		err            string
		uncertain      bool
		calls          []string
		event          string
	}{
		"in time": {
			grace: 30 * time.Second, status: exited, facts: ended, calls: []string{"stop c1 30s", "status c1"},
			event: "Stopping container app",
		},
		"with a reason": {
			grace: 5 * time.Second, why: "Container app failed liveness probe, will be restarted", status: exited, facts: ended,
			calls: []string{"stop c1 5s", "status c1"}, event: "Container app failed liveness probe, will be restarted",
		},
		"with no time left": {
			grace: -time.Minute, status: exited, facts: ended, calls: []string{"stop c1 2s", "status c1"}, event: "Stopping container app",
		},
		"it is gone": {
			grace: time.Minute, stErr: gone, facts: pod.Facts{pod.ContainerRemoved{ID: "c1"}},
			calls: []string{"stop c1 1m0s", "status c1"}, event: "Stopping container app",
		},
		"a runtime that says so at once": {
			grace: time.Minute, stopErr: gone, stErr: gone, facts: pod.Facts{pod.ContainerRemoved{ID: "c1"}},
			calls: []string{"stop c1 1m0s", "status c1"}, event: "Stopping container app",
		},
		"the stop fails": {
			grace: time.Minute, stopErr: errors.New("boom"), err: "stopping container app: boom",
			calls: []string{"stop c1 1m0s"}, event: "Stopping container app",
		},
		"its end cannot be read": {
			grace: time.Minute, stErr: errors.New("boom"), facts: vague, err: "reading container app, just stopped: boom", uncertain: true,
			calls: []string{"stop c1 1m0s", "status c1"}, event: "Stopping container app",
		},
		"it still runs": {
			grace: time.Minute, status: &runtimeapi.ContainerStatus{Id: "c1", State: runtimeapi.ContainerState_CONTAINER_RUNNING},
			facts: saw(pod.Container{ID: "c1", SandboxID: "s1", State: pod.Running, Detailed: true}),
			err:   "container app was stopped, but the runtime says that it is CONTAINER_RUNNING",
			calls: []string{"stop c1 1m0s", "status c1"}, event: "Stopping container app",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r.rt.fail["stop"], r.rt.fail["status"], r.rt.status = tc.stopErr, tc.stErr, tc.status
			facts, err := r.Stop(t.Context(), start(nil).State, running, tc.grace, tc.why)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.err)
				require.Equal(t, "KillContainerError", pod.ReasonOf(err))
			}
			require.Equal(t, tc.uncertain, uncertain(err))
			require.Empty(t, cmp.Diff(tc.facts, facts, times))
			require.Equal(t, tc.calls, r.rt.calls)
			require.Equal(t, []string{"spec.containers{app} Normal Killing: " + tc.event}, r.ev.lines)
		})
	}
}

func TestStopOfAPodThatOnlyTheRuntimeKnows(t *testing.T) {
	r := newRig(nil)
	r.rt.status.State = runtimeapi.ContainerState_CONTAINER_EXITED
	_, err := r.Stop(t.Context(), &pod.State{Identity: identity}, pod.Container{ID: "c1", Name: "app"}, 0, "")
	require.NoError(t, err)
	require.Equal(t, []string{"spec.containers{app} Normal Killing: Stopping container app"}, r.ev.lines)
	require.Equal(t, "prod/web/u-1", r.ev.pod.Namespace+"/"+r.ev.pod.Name+"/"+string(r.ev.pod.UID))
}

func TestRemove(t *testing.T) {
	links, logs := t.TempDir(), t.TempDir()
	log := write(t, filepath.Join(logs, "3.log"), "x")
	write(t, log+".20260101-000000", "x")
	write(t, log+".20260101-000000.gz", "x")
	kept := []string{write(t, filepath.Join(logs, "13.log"), "x"), write(t, filepath.Join(logs, "3.logs"), "x")}
	link := filepath.Join(links, "web_prod_app-c1.log")
	require.NoError(t, os.Symlink(log, link))

	r := newRig(func(s *container.Settings) { s.LinkDir = links })
	s := &pod.State{Identity: identity}
	r.rt.fail["remove"] = errors.New("boom")
	_, err := r.Remove(t.Context(), s, pod.Container{ID: "c1", Name: "app", LogPath: log})
	require.EqualError(t, err, "removing container app: boom")

	delete(r.rt.fail, "remove")
	facts, err := r.Remove(t.Context(), s, pod.Container{ID: "c1", Name: "app", LogPath: log})
	require.NoError(t, err)
	require.Equal(t, pod.Facts{pod.ContainerRemoved{ID: "c1"}}, facts)
	require.Equal(t, []string{"remove c1", "remove c1"}, r.rt.calls)
	left, err := filepath.Glob(filepath.Join(logs, "*"))
	require.NoError(t, err)
	require.ElementsMatch(t, kept, left)
	_, err = os.Lstat(link)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAContainerThatIsResetLeavesItsLog(t *testing.T) {
	links := t.TempDir()
	log := write(t, filepath.Join(t.TempDir(), "0.log"), "x")
	link := filepath.Join(links, "web_prod_app-c1.log")
	require.NoError(t, os.Symlink(log, link))
	r := newRig(func(s *container.Settings) { s.LinkDir = links })
	_, err := r.Remove(t.Context(), &pod.State{Identity: identity}, pod.Container{ID: "c1", Name: "app", LogPath: log, Reset: true})
	require.NoError(t, err)
	require.FileExists(t, log)
	_, err = os.Lstat(link)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, []string{"remove c1"}, r.rt.calls)
}

func TestRemoveAsksWhereTheLogIs(t *testing.T) {
	log := write(t, filepath.Join(t.TempDir(), "0.log"), "x")
	r := newRig(nil)
	r.rt.status.LogPath = log
	_, err := r.Remove(t.Context(), &pod.State{}, pod.Container{ID: "c1"})
	require.NoError(t, err)
	require.NoFileExists(t, log)
	require.Equal(t, []string{"status c1", "remove c1"}, r.rt.calls)

	r = newRig(nil)
	r.rt.fail["status"] = status.Error(codes.NotFound, "c1")
	facts, err := r.Remove(t.Context(), &pod.State{}, pod.Container{ID: "c1"})
	require.NoError(t, err)
	require.Equal(t, pod.Facts{pod.ContainerRemoved{ID: "c1"}}, facts)

	r = newRig(nil)
	r.rt.fail["status"] = status.Error(codes.Unavailable, "eof")
	_, err = r.Remove(t.Context(), &pod.State{}, pod.Container{ID: "c1"})
	require.True(t, soon(err))
	require.Equal(t, []string{"status c1"}, r.rt.calls, "its log would never be found again")
}

func TestUnsupported(t *testing.T) {
	require.Empty(t, container.Unsupported(start(nil).State.Pod(), container.Settings{}))
	p := start(func(p *v1.Pod, app *v1.Container) {
		app.LivenessProbe, app.Lifecycle = &v1.Probe{}, &v1.Lifecycle{StopSignal: ptr.To(v1.SIGUSR1)}
		app.VolumeMounts = []v1.VolumeMount{{SubPath: "x"}, {SubPathExpr: "y"}}
		p.Spec.InitContainers = []v1.Container{{
			StartupProbe: &v1.Probe{}, ReadinessProbe: &v1.Probe{},
			RestartPolicyRules: []v1.ContainerRestartRule{{}}, VolumeDevices: []v1.VolumeDevice{{}},
			Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{}}},
		}}
		p.Spec.EphemeralContainers = []v1.EphemeralContainer{{}}
		p.Spec.Volumes = []v1.Volume{{}, {VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{}}}}
		p.Spec.HostUsers, p.Spec.RuntimeClassName = ptr.To(false), ptr.To("kata")
		p.Spec.ImagePullSecrets = []v1.LocalObjectReference{{}}
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{}}
	}).State.Pod()
	require.Equal(t, []string{
		"spec.initContainers[0].resources.claims", "spec.initContainers[0].volumeDevices",
		"spec.containers[0].lifecycle.stopSignal (needs the feature gate ContainerStopSignals)",
		"spec.runtimeClassName", "spec.imagePullSecrets", "spec.resourceClaims",
	}, container.Unsupported(p, container.Settings{}))
	require.NotContains(t, strings.Join(container.Unsupported(p, container.Settings{StopSignals: true}), " "), "stopSignal")
}

// Alpha in Kubernetes v1.37 and off there: told, not built.
func TestAlphaFieldsAreUnsupported(t *testing.T) {
	file := v1.DownwardAPIVolumeFile{User: ptr.To[int64](1)}
	p := start(func(p *v1.Pod, app *v1.Container) {
		app.VolumeMounts = []v1.VolumeMount{{BindMountOptions: []string{"noexec"}}}
		app.ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Protocol: ptr.To(v1.HTTPProtocolHTTP2)}}}
		app.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Mode: ptr.To(v1.GRPCProbeModeTLS)}}}
		p.Spec.Volumes = []v1.Volume{
			{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Mode: ptr.To[int32](0o700)}}},
			{VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{file}}}},
			{VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{DefaultUser: ptr.To[int64](1)}}},
			{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultUser: ptr.To[int64](1)}}},
			{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
				Sources: []v1.VolumeProjection{{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{file}}}},
			}}},
		}
	}).State.Pod()
	require.Equal(t, []string{
		"spec.containers[0].volumeMounts[0].bindMountOptions",
		"spec.containers[0].livenessProbe.grpc.mode", "spec.containers[0].readinessProbe.httpGet.protocol",
		"spec.volumes[0].emptyDir.mode", "spec.volumes[1].downwardAPI: users of files", "spec.volumes[2].downwardAPI: users of files",
		"spec.volumes[3].projected: users of files", "spec.volumes[4].projected: users of files",
	}, container.Unsupported(p, container.Settings{}))
}
