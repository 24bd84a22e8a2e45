package hook_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/nodehttp"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/hook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type executor func(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error)

func (e executor) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error) {
	return e(ctx, id, command, timeout)
}

type events []string

func (e *events) Event(_ *v1.Pod, fieldPath, eventType, reason, message string) {
	*e = append(*e, fieldPath+" "+eventType+" "+reason+": "+message)
}

type fixture struct {
	*hook.Hooks

	events events
}

func newFixture(exec hook.Executor) *fixture {
	f := &fixture{}
	f.Hooks = hook.New(hook.Config{Exec: exec, HTTP: nodehttp.New(), Events: &f.events, Version: "1.37"})
	return f
}

func target(k hook.Kind) hook.Target {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "web"}}}}
	return hook.Target{Pod: p, Container: &p.Spec.Containers[0], ID: "c1", PodIPs: []string{"127.0.0.1"}, Kind: k}
}

func command(words ...string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: words}}
}

func TestExec(t *testing.T) {
	broken := errors.New("container c1 is not running")
	for name, tc := range map[string]struct {
		kind   hook.Kind
		code   int32
		err    error
		want   string // the error's text
		reason string
		events []string
	}{
		"exit 0": {kind: hook.PostStart},
		"postStart exits 1": {
			hook.PostStart, 1, nil, `postStart hook of container web: command "warm up $(A)" exited with 1: out err`,
			"PostStartHookError",
			[]string{"spec.containers{web} Warning FailedPostStartHook: PostStartHook failed"},
		},
		"preStop exits 2": {
			hook.PreStop, 2, nil, `preStop hook of container web: command "warm up $(A)" exited with 2: out err`,
			"FailedPreStopHook",
			[]string{"spec.containers{web} Warning FailedPreStopHook: PreStopHook failed"},
		},
		"cannot be run": {
			hook.PreStop, 0, broken, "preStop hook of container web: " + broken.Error(),
			"FailedPreStopHook",
			[]string{"spec.containers{web} Warning FailedPreStopHook: PreStopHook failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(executor(func(_ context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error) {
				require.Equal(t, "c1", id)
				require.Equal(t, []string{"warm", "up", "$(A)"}, command, "not expanded")
				require.Zero(t, timeout)
				return &runtimeapi.ExecSyncResponse{Stdout: []byte("out "), Stderr: []byte("err"), ExitCode: tc.code}, tc.err
			}))
			err := f.Run(t.Context(), target(tc.kind), command("warm", "up", "$(A)"))
			require.Equal(t, tc.reason, pod.ReasonOf(err))
			require.Equal(t, events(tc.events), f.events)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
			}
		})
	}
}

// A runtime that goes away ends no hook, and tells nothing about it.
func TestRuntimeGoesAwayMeanwhile(t *testing.T) {
	f := newFixture(executor(func(context.Context, string, []string, time.Duration) (*runtimeapi.ExecSyncResponse, error) {
		return nil, status.Error(codes.Unavailable, "transport is closing")
	}))
	err := f.Run(t.Context(), target(hook.PostStart), command("warm"))
	require.ErrorIs(t, err, hook.ErrUnended)
	require.Empty(t, f.events)
}

func TestOutputIsLimited(t *testing.T) {
	f := newFixture(executor(func(context.Context, string, []string, time.Duration) (*runtimeapi.ExecSyncResponse, error) {
		return &runtimeapi.ExecSyncResponse{Stdout: []byte(strings.Repeat("x", 1<<20)), ExitCode: 1}, nil
	}))
	err := f.Run(t.Context(), target(hook.PostStart), command("true"))
	require.Less(t, len(err.Error()), 1200)
}

// The ends of a hook's time: BC-25 is the first.
func TestCut(t *testing.T) {
	deadline := errors.New("the grace period is over")
	hanging := executor(func(ctx context.Context, _ string, _ []string, _ time.Duration) (*runtimeapi.ExecSyncResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for name, tc := range map[string]struct {
		handler *v1.LifecycleHandler
		cause   error
		told    bool
	}{
		"command, deadline":        {command("sleep", "999999"), deadline, true},
		"sleep, deadline":          {&v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 999999}}, deadline, true},
		"command, no longer asked": {command("sleep", "999999"), dag.ErrSuperseded, true},
		"command, agent stops":     {command("sleep", "999999"), dag.ErrStopping, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, tc.cause)
				defer cancel()
				began := time.Now()
				f := newFixture(hanging)
				err := f.Run(ctx, target(hook.PreStop), tc.handler)
				require.Equal(t, time.Minute, time.Since(began))
				require.ErrorIs(t, err, tc.cause)
				require.Equal(t, tc.told, errors.Is(err, hook.ErrCut))
				if !tc.told {
					require.Empty(t, f.events)
					return
				}
				require.Equal(t, events{"spec.containers{web} Warning FailedPreStopHook: PreStopHook failed: it did not finish in the time it had"}, f.events)
				require.Equal(t, "FailedPreStopHook", pod.ReasonOf(err))
			})
		})
	}
}

func TestSleep(t *testing.T) {
	for _, secs := range []int64{0, 5} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			f := newFixture(nil)
			require.NoError(t, f.Run(t.Context(), target(hook.PostStart), &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: secs}}))
			require.Equal(t, time.Duration(secs)*time.Second, time.Since(began))
			require.Empty(t, f.events)
		})
	}
}

func TestNoHandler(t *testing.T) {
	for want, h := range map[string]*v1.LifecycleHandler{
		"tcpSocket is no lifecycle hook": {TCPSocket: &v1.TCPSocketAction{}},
		"it names nothing to do":         {},
	} {
		f := newFixture(nil)
		require.ErrorContains(t, f.Run(t.Context(), target(hook.PostStart), h), want)
		require.Equal(t, events{"spec.containers{web} Warning FailedPostStartHook: PostStartHook failed"}, f.events)
	}
}

func get(path string, s *httptest.Server) *v1.LifecycleHandler {
	port := s.Listener.Addr().(*net.TCPAddr).Port
	return &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromInt(port)}}
}

func TestHTTP(t *testing.T) {
	agents := map[string]string{}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		agents[r.URL.Path] = r.UserAgent()
		switch r.URL.Path {
		case "/500":
			w.WriteHeader(http.StatusInternalServerError)
		case "/broken":
			w.Header().Set("Content-Length", "10")
		case "/away":
			http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, path := range []string{"/ok", "/500", "/broken", "/away"} {
		f := newFixture(nil)
		require.NoError(t, f.Run(t.Context(), target(hook.PreStop), get(path, s)), path)
		require.Equal(t, "kube-lifecycle/1.37", agents[path])
		require.Empty(t, f.events)
	}

	h, tgt := get("/ok", s), target(hook.PreStop)
	tgt.PodIPs = nil
	require.ErrorIs(t, newFixture(nil).Run(t.Context(), tgt, h), nodehttp.ErrNoIP)
	tgt.Pod.Spec.HostNetwork, tgt.NodeIP = true, "127.0.0.1"
	require.NoError(t, newFixture(nil).Run(t.Context(), tgt, h))

	h.HTTPGet.Port = intstr.FromString("admin")
	require.ErrorContains(t, newFixture(nil).Run(t.Context(), tgt, h), "no port of that name")

	gone := get("/ok", s)
	s.Close()
	f := newFixture(nil)
	require.ErrorContains(t, f.Run(t.Context(), target(hook.PreStop), gone), "connection refused")
	require.Equal(t, events{"spec.containers{web} Warning FailedPreStopHook: PreStopHook failed"}, f.events)
}

func TestHTTPSThatIsHTTP(t *testing.T) {
	var headers http.Header
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { headers = r.Header }))
	defer s.Close()
	h := get("/", s)
	h.HTTPGet.Scheme = v1.URISchemeHTTPS
	h.HTTPGet.HTTPHeaders = []v1.HTTPHeader{{Name: "Authorization", Value: "Bearer secret"}, {Name: "X-Own", Value: "1"}}
	f := newFixture(nil)
	require.NoError(t, f.Run(t.Context(), target(hook.PostStart), h))
	require.Empty(t, headers.Get("Authorization"))
	require.Equal(t, "1", headers.Get("X-Own"))
	require.Len(t, f.events, 1)
	require.Contains(t, f.events[0], "spec.containers{web} Warning LifecycleHTTPFallback: ")
}

func TestHTTPS(t *testing.T) {
	auth := ""
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { auth = r.Header.Get("Authorization") }))
	defer s.Close()
	h := get("/", s)
	h.HTTPGet.Scheme = v1.URISchemeHTTPS
	h.HTTPGet.HTTPHeaders = []v1.HTTPHeader{{Name: "Authorization", Value: "Bearer secret"}}
	f := newFixture(nil)
	require.NoError(t, f.Run(t.Context(), target(hook.PostStart), h))
	require.Equal(t, "Bearer secret", auth)
	require.Empty(t, f.events)
}

func TestHTTPEndsWithItsContext(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	over := errors.New("the grace period is over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, over)
	defer cancel()
	f := newFixture(nil)
	err := f.Run(ctx, target(hook.PreStop), get("/", s))
	require.ErrorIs(t, err, hook.ErrCut)
	require.ErrorIs(t, err, over)
	require.Len(t, f.events, 1)
}
