package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/sandbox"
)

var _ sandbox.Runtime = (*cri.Client)(nil)

// fakeRuntime answers each method with the error of its map and logs calls.
type fakeRuntime struct {
	calls   []string
	fail    map[string]error
	config  *runtimeapi.PodSandboxConfig
	handler string
}

func (r *fakeRuntime) call(what string) error {
	r.calls = append(r.calls, what)
	return r.fail[what]
}

func (r *fakeRuntime) RunPodSandbox(_ context.Context, c *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	r.config, r.handler = c, handler
	return "s1", r.call("run")
}

func (r *fakeRuntime) PodSandboxStatus(_ context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	return &runtimeapi.PodSandboxStatus{
		Id: id, Metadata: r.config.GetMetadata(), CreatedAt: 9, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.7"},
	}, r.call("status " + id)
}

func (r *fakeRuntime) StopPodSandbox(_ context.Context, id string) error { return r.call("stop " + id) }

func (r *fakeRuntime) RemovePodSandbox(_ context.Context, id string) error {
	return r.call("remove " + id)
}

// recorder keeps events as "PATH TYPE REASON: MESSAGE".
type recorder struct{ lines []string }

func (r *recorder) Event(_ *v1.Pod, fieldPath, eventType, reason, message string) {
	r.lines = append(r.lines, fieldPath+" "+eventType+" "+reason+": "+message)
}

var ended = cmpopts.IgnoreFields(pod.Observed{}, "Ended")

func TestCreate(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(conf, []byte("nameserver 192.0.2.5\n"), 0o600))
	rt, ev := &fakeRuntime{}, &recorder{}
	b := sandbox.New(rt, ev, sandbox.Settings{
		ResolvConf:   conf,
		CgroupParent: func(p *v1.Pod) string { return "/k/" + string(p.UID) },
		Handler:      func(*v1.Pod) (string, error) { return "kata", nil },
	})
	facts, err := b.Create(t.Context(), state(nil), 2)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(pod.Facts{pod.Observed{
		Identity: pod.Identity{Name: "web", Namespace: "prod", UID: "u-1"}, Partial: true,
		Sandboxes: []pod.Sandbox{{ID: "s1", Attempt: 2, CreatedAt: time.Unix(0, 9), Ready: true, IPs: []string{"10.0.0.7"}, Detailed: true}},
	}}, facts, ended))
	require.Equal(t, []string{"run", "status s1"}, rt.calls)
	require.Equal(t, "kata", rt.handler)
	require.Equal(t, "/k/u-1", rt.config.GetLinux().GetCgroupParent())
	require.Equal(t, []string{"192.0.2.5"}, rt.config.GetDnsConfig().GetServers())
	require.Equal(t, "/var/log/pods/prod_web_u-1", rt.config.GetLogDirectory())
	require.Empty(t, ev.lines)

	same, err := b.Config(state(nil), 2)
	require.NoError(t, err)
	require.Equal(t, rt.config.String(), same.String(), "pulls and containers carry the same request")
}

func TestCreateFails(t *testing.T) {
	for name, tc := range map[string]struct {
		err       error
		uncertain bool
		soon      bool
	}{
		"refused":              {status.Error(codes.InvalidArgument, "no"), false, false},
		"failed half-way":      {status.Error(codes.Unknown, "cni"), true, false},
		"name taken":           {status.Error(codes.Unknown, `name "x" is reserved for "y"`), true, false},
		"out of time":          {status.Error(codes.DeadlineExceeded, "slow"), true, false},
		"the runtime went off": {status.Error(codes.Unavailable, "eof"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			rt, ev := &fakeRuntime{fail: map[string]error{"run": tc.err}}, &recorder{}
			facts, err := sandbox.New(rt, ev, sandbox.Settings{}).Create(t.Context(), state(nil), 0)
			require.Empty(t, facts)
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, "CreatePodSandboxError", pod.ReasonOf(err))
			require.Equal(t, tc.uncertain, uncertain(err))
			require.Equal(t, tc.soon, soon(err))
			require.Equal(t, []string{"run"}, rt.calls)
			require.Equal(t, []string{" Warning FailedCreatePodSandBox: Failed to create pod sandbox: " + err.Error()}, ev.lines)
		})
	}
}

func TestCreateThatCannotBeRead(t *testing.T) {
	rt, ev := &fakeRuntime{fail: map[string]error{"status s1": errors.New("boom")}}, &recorder{}
	facts, err := sandbox.New(rt, ev, sandbox.Settings{}).Create(t.Context(), state(nil), 4)
	require.Error(t, err)
	require.True(t, uncertain(err), "somebody has to look")
	require.Len(t, facts, 1)
	seen := facts[0].(pod.Observed)
	require.True(t, seen.Partial)
	require.Empty(t, cmp.Diff([]pod.Sandbox{{ID: "s1", Attempt: 4, Ready: true}}, seen.Sandboxes, cmpopts.IgnoreFields(pod.Sandbox{}, "CreatedAt")))
	require.Equal(t, []string{" Warning FailedPodSandBoxStatus: Unable to get pod sandbox status: boom"}, ev.lines)
}

func TestCreateForAPodThatIsEndingMakesNoEvent(t *testing.T) {
	rt, ev := &fakeRuntime{fail: map[string]error{"run": errors.New("no")}}, &recorder{}
	s := state(nil)
	s.Removal = &pod.Removal{}
	_, err := sandbox.New(rt, ev, sandbox.Settings{}).Create(t.Context(), s, 0)
	require.Error(t, err)
	require.Empty(t, ev.lines)
}

func TestCreateIsNotTriedWhereTheSpecIsWrong(t *testing.T) {
	rt, ev := &fakeRuntime{}, &recorder{}
	_, err := sandbox.New(rt, ev, sandbox.Settings{}).Create(t.Context(), state(func(p *v1.Pod) { p.Spec.Hostname = "A" }), 0)
	require.Equal(t, "ConfigPodSandboxError", pod.ReasonOf(err))
	require.True(t, inChain(err, func(e error) bool { return reflect.DeepEqual(e, dag.Terminal(errors.Unwrap(e))) }))
	require.Empty(t, rt.calls)
	require.Len(t, ev.lines, 1)

	for name, settings := range map[string]sandbox.Settings{
		"no resolv.conf": {ResolvConf: filepath.Join(t.TempDir(), "none")},
		"no handler":     {Handler: func(*v1.Pod) (string, error) { return "", errors.New("no such class") }},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sandbox.New(rt, ev, settings).Create(t.Context(), state(nil), 0)
			require.Equal(t, "ConfigPodSandboxError", pod.ReasonOf(err))
			require.False(t, inChain(err, func(e error) bool { return reflect.DeepEqual(e, dag.Terminal(errors.Unwrap(e))) }), "it may be mended")
			require.Empty(t, rt.calls)
		})
	}
}

func TestDNSWarningsBecomeEventsOnce(t *testing.T) {
	ev := &recorder{}
	b := sandbox.New(&fakeRuntime{}, ev, sandbox.Settings{})
	s := state(func(p *v1.Pod) { p.Spec.DNSPolicy = v1.DNSClusterFirstWithHostNet })
	_, err := b.Config(s, 0)
	require.NoError(t, err)
	require.Empty(t, ev.lines)
	_, err = b.Create(t.Context(), s, 0)
	require.NoError(t, err)
	require.Len(t, ev.lines, 1)
	require.Contains(t, ev.lines[0], "MissingClusterDNS")
}

func TestStopAndRemove(t *testing.T) {
	boom := status.Error(codes.Unknown, "boom")
	rt := &fakeRuntime{fail: map[string]error{"stop s2": boom, "remove s3": boom}}
	b := sandbox.New(rt, &recorder{}, sandbox.Settings{})

	facts, err := b.Stop(t.Context(), []string{"s1", "s2", "s3"})
	require.ErrorIs(t, err, boom)
	require.Equal(t, "KillPodSandboxError", pod.ReasonOf(err))
	require.Equal(t, pod.Facts{pod.SandboxStopped{ID: "s1"}, pod.SandboxStopped{ID: "s3"}}, facts, "one failure does not keep the others up")

	facts, err = b.Remove(t.Context(), []string{"s1", "s3"})
	require.ErrorIs(t, err, boom)
	require.Equal(t, pod.Facts{pod.SandboxRemoved{ID: "s1"}}, facts)

	facts, err = b.Remove(t.Context(), []string{"s1"})
	require.NoError(t, err)
	require.Equal(t, pod.Facts{pod.SandboxRemoved{ID: "s1"}}, facts)
}

func uncertain(err error) bool {
	var u interface{ Uncertain() bool }
	return errors.As(err, &u) && u.Uncertain()
}

// soon reports whether the engine is asked to run the stage again after 1 s.
func soon(err error) bool {
	return inChain(err, func(e error) bool { return reflect.DeepEqual(e, dag.RetryAfter(errors.Unwrap(e), time.Second)) })
}

func inChain(err error, is func(error) bool) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if is(err) {
			return true
		}
	}
	return false
}
