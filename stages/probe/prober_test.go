package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/nodehttp"
	"github.com/flowlet/flowlet/stages/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// executor answers commands.
type executor func(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error)

func (e executor) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error) {
	return e(ctx, id, command, timeout)
}

// events records what users are told.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) Event(_ *v1.Pod, fieldPath, eventType, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, fieldPath+" "+eventType+" "+reason+": "+message)
}

type fixture struct {
	*probe.Prober

	events  events
	checked []probe.Outcome
}

func newFixture(exec probe.Executor) *fixture {
	f := &fixture{}
	f.Prober = probe.New(probe.Config{
		Exec: exec, HTTP: nodehttp.New(), Events: &f.events, Version: "1.37",
		Checked: func(_ probe.Target, r probe.Result) { f.checked = append(f.checked, r.Outcome) },
	})
	return f
}

func target(h v1.ProbeHandler) probe.Target {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{
		Name: "web", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	}}}}
	return probe.Target{
		Pod: p, Container: &p.Spec.Containers[0], ID: "c1", PodIPs: []string{"127.0.0.1"}, Kind: probe.Liveness,
		Probe: &v1.Probe{ProbeHandler: h, TimeoutSeconds: 1},
	}
}

func execHandler(command ...string) v1.ProbeHandler {
	return v1.ProbeHandler{Exec: &v1.ExecAction{Command: command}}
}

func TestExec(t *testing.T) {
	broken := errors.New("container c1 is not running")
	for name, tc := range map[string]struct {
		code   int32
		err    error
		want   probe.Outcome
		output string
		calls  int
		events []string
	}{
		"exit 0": {want: probe.Success, output: "out err", calls: 1},
		"exit 1": {
			code: 1, want: probe.Failure, output: "out err", calls: 1,
			events: []string{"spec.containers{web} Warning Unhealthy: Liveness probe failed: out err"},
		},
		"timeout of the runtime": {
			err:  fmt.Errorf("ExecSync c1: %w", status.Error(codes.DeadlineExceeded, "timeout 1s exceeded")),
			want: probe.Failure, output: `command timed out: "check web $(NONE)" timed out after 1s`, calls: 1,
			events: []string{`spec.containers{web} Warning Unhealthy: Liveness probe failed: command timed out: "check web $(NONE)" timed out after 1s`},
		},
		"timeout of the client": {
			err:  fmt.Errorf("ExecSync c1: %w", context.DeadlineExceeded),
			want: probe.Failure, output: `command timed out: "check web $(NONE)" timed out after 1s`, calls: 1,
			events: []string{`spec.containers{web} Warning Unhealthy: Liveness probe failed: command timed out: "check web $(NONE)" timed out after 1s`},
		},
		"cannot be run": {
			err: broken, want: probe.Errored, output: broken.Error(), calls: 3,
			events: []string{"spec.containers{web} Warning Unhealthy: Liveness probe errored and resulted in Failure state: " + broken.Error()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			f := newFixture(executor(func(_ context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error) {
				calls++
				require.Equal(t, "c1", id)
				require.Equal(t, []string{"check", "web", "$(NONE)"}, command)
				require.Equal(t, time.Second, timeout)
				return &runtimeapi.ExecSyncResponse{Stdout: []byte("out "), Stderr: []byte("err"), ExitCode: tc.code}, tc.err
			}))
			tgt := target(execHandler("check", "$(NAME)", "$(NONE)"))
			tgt.Container.Env = []v1.EnvVar{{Name: "NAME", Value: "web"}}
			got := f.Check(t.Context(), tgt)
			require.Equal(t, tc.want, got.Outcome)
			require.Equal(t, tc.output, got.Output)
			require.Equal(t, "c1", got.ID)
			require.Equal(t, tc.calls, calls)
			require.Equal(t, tc.events, f.events.list)
			require.Equal(t, []probe.Outcome{tc.want}, f.checked)
		})
	}
}

func TestAnErrorMayBePassing(t *testing.T) {
	calls := 0
	f := newFixture(executor(func(context.Context, string, []string, time.Duration) (*runtimeapi.ExecSyncResponse, error) {
		if calls++; calls < 3 {
			return nil, errors.New("busy")
		}
		return &runtimeapi.ExecSyncResponse{}, nil
	}))
	require.Equal(t, probe.Success, f.Check(t.Context(), target(execHandler("true"))).Outcome)
	require.Empty(t, f.events.list)
}

func TestReferencesInCommands(t *testing.T) {
	secret := v1.EnvVar{Name: "SECRET", ValueFrom: &v1.EnvVarSource{}}
	env := []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, secret}
	for arg, want := range map[string]string{
		"$(A)-$(A)": "1-1", "$(B)": "$(A)", "$$(A)": "$(A)", "$$$(A)": "$1", "$(C)": "$(C)", "[$(SECRET)]": "[]", "$A $(A": "$A $(A",
	} {
		var got []string
		f := newFixture(executor(func(_ context.Context, _ string, command []string, _ time.Duration) (*runtimeapi.ExecSyncResponse, error) {
			got = command
			return &runtimeapi.ExecSyncResponse{}, nil
		}))
		tgt := target(execHandler(arg))
		tgt.Container.Env = env
		f.Check(t.Context(), tgt)
		require.Equal(t, []string{want}, got, arg)
	}
}

func TestOutputIsLimited(t *testing.T) {
	long := strings.Repeat("é", 10<<10)
	f := newFixture(executor(func(context.Context, string, []string, time.Duration) (*runtimeapi.ExecSyncResponse, error) {
		return &runtimeapi.ExecSyncResponse{Stdout: []byte("x" + long), ExitCode: 1}, nil
	}))
	got := f.Check(t.Context(), target(execHandler("true")))
	require.Equal(t, "x"+long[:10<<10-2], got.Output, "cut between two characters")
}

func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("no longer wanted")
		ctx, cancel := context.WithCancelCause(t.Context())
		f := newFixture(executor(func(ctx context.Context, _ string, _ []string, _ time.Duration) (*runtimeapi.ExecSyncResponse, error) {
			<-ctx.Done()
			return nil, status.FromContextError(context.DeadlineExceeded).Err() // as if it were the probe's
		}))
		began := time.Now()
		time.AfterFunc(300*time.Millisecond, func() { cancel(gone) })
		got := f.Check(ctx, target(execHandler("sleep")))
		require.Equal(t, probe.Result{ID: "c1", Outcome: probe.None, Output: gone.Error(), Began: began, Took: 300 * time.Millisecond}, got)
		require.Empty(t, f.events.list)
		require.Empty(t, f.checked)
	})
}

func TestHTTP(t *testing.T) {
	var agent string
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		_, _ = w.Write([]byte("fine"))
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
	})
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("short"))
	})
	for _, code := range []int{204, 304, 400, 503} {
		mux.HandleFunc(fmt.Sprintf("/%d", code), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	s := httptest.NewServer(mux)
	defer s.Close()
	port := s.Listener.Addr().(*net.TCPAddr).Port
	for path, tc := range map[string]struct {
		want   probe.Outcome
		output string
		event  string
	}{
		"/ok":     {probe.Success, "fine", ""},
		"/here":   {probe.Success, "fine", ""},
		"/204":    {probe.Success, "", ""},
		"/304":    {probe.Warning, "Probe terminated redirects, Response body: ", "ProbeWarning: Liveness probe warning: Probe terminated redirects"},
		"/400":    {probe.Failure, "HTTP probe failed with statuscode: 400", "Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 400"},
		"/503":    {probe.Failure, "HTTP probe failed with statuscode: 503", "Unhealthy: Liveness probe failed"},
		"/away":   {probe.Warning, "Probe terminated redirects, Response body: <a href=\"http://other.invalid/\">Found</a>.\n\n", "ProbeWarning"},
		"/broken": {probe.Failure, fmt.Sprintf("reading the answer of %s/broken: unexpected EOF", s.URL), "Unhealthy: Liveness probe failed"},
	} {
		t.Run(path[1:], func(t *testing.T) {
			f := newFixture(nil)
			got := f.Check(t.Context(), target(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromInt(port)}}))
			require.Equal(t, tc.want, got.Outcome)
			require.Equal(t, tc.output, got.Output)
			require.Equal(t, tc.event != "", len(f.events.list) == 1)
			if tc.event != "" {
				require.Contains(t, f.events.list[0], tc.event)
			}
		})
	}
	require.Equal(t, "kube-probe/1.37", agent)
}

func TestWhereNetworkProbesGo(t *testing.T) {
	l := listen(t)
	port := l.Addr().(*net.TCPAddr).Port
	tcp := v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(port)}}
	get := v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt(port)}}
	check := v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(port)}} //nolint:gosec // a port
	named := v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("http")}}
	for name, tc := range map[string]struct {
		handler v1.ProbeHandler
		change  func(*probe.Target)
		want    probe.Outcome
		output  string
	}{
		"pod IP":         {tcp, nil, probe.Success, ""},
		"node IP":        {tcp, func(t *probe.Target) { t.Pod.Spec.HostNetwork, t.PodIPs, t.NodeIP = true, nil, "127.0.0.1" }, probe.Success, ""},
		"named port":     {named, func(t *probe.Target) { t.Container.Ports[0].ContainerPort = int32(port) }, probe.Success, ""}, //nolint:gosec // a port
		"unknown name":   {named, func(t *probe.Target) { t.Container.Ports = nil }, probe.Errored, "container web has no port of that name"},
		"tcp without IP": {tcp, func(t *probe.Target) { t.PodIPs = nil }, probe.Errored, "the pod has no IP"},
		"http, no IP":    {get, func(t *probe.Target) { t.PodIPs = nil }, probe.Errored, "the pod has no IP"},
		"grpc, no IP":    {check, func(t *probe.Target) { t.PodIPs = nil }, probe.Errored, "the pod has no IP"},
		"own host": {tcp, func(t *probe.Target) {
			t.PodIPs = nil
			t.Probe.TCPSocket = &v1.TCPSocketAction{Port: t.Probe.TCPSocket.Port, Host: "127.0.0.1"}
		}, probe.Success, ""},
		"no handler": {v1.ProbeHandler{}, nil, probe.Errored, "names nothing to do"},
	} {
		t.Run(name, func(t *testing.T) {
			tgt := target(tc.handler)
			if tc.change != nil {
				tc.change(&tgt)
			}
			got := newFixture(nil).Check(t.Context(), tgt)
			require.Equal(t, tc.want, got.Outcome, got.Output)
			require.Contains(t, got.Output, tc.output)
		})
	}
}

// listen opens a port of the loopback on which nothing is ever accepted.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestNobodyListens(t *testing.T) {
	l := listen(t)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	for name, h := range map[string]v1.ProbeHandler{
		"tcp":  {TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(port)}},
		"http": {HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt(port)}},
		"grpc": {GRPC: &v1.GRPCAction{Port: int32(port)}}, //nolint:gosec // a port
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // gRPC waits for the server until the timeout
			got := newFixture(nil).Check(t.Context(), target(h))
			require.Equal(t, probe.Failure, got.Outcome)
			require.Contains(t, got.Output, "connection refused")
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	port := listen(t).Addr().(*net.TCPAddr).Port
	for name, tc := range map[string]struct {
		handler v1.ProbeHandler
		want    string
	}{
		"http": {v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt(port)}}, "Client.Timeout exceeded while awaiting headers"},
		"grpc": {v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(port)}}, "timeout: failed to connect service"}, //nolint:gosec // a port
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newFixture(nil).Check(t.Context(), target(tc.handler))
			require.Equal(t, probe.Failure, got.Outcome)
			require.Contains(t, got.Output, tc.want)
			require.Less(t, got.Took, 5*time.Second)
		})
	}
}

// slowHealth never answers.
type slowHealth struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (slowHealth) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func serveGRPC(t *testing.T, register func(*grpc.Server)) int32 {
	t.Helper()
	l := listen(t)
	s := grpc.NewServer()
	register(s)
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Stop(); wg.Wait() })
	return int32(l.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port
}

func TestGRPCWaitsForAServerThatStarts(t *testing.T) {
	t.Parallel()
	l := listen(t)
	address := l.Addr().(*net.TCPAddr)
	require.NoError(t, l.Close())
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer s.Stop()
	time.AfterFunc(100*time.Millisecond, func() {
		if l, err := net.ListenTCP("tcp", address); err == nil {
			wg.Go(func() { _ = s.Serve(l) })
		}
	})
	tgt := target(v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(address.Port)}}) //nolint:gosec // a port
	tgt.Probe.TimeoutSeconds = 20
	got := newFixture(nil).Check(t.Context(), tgt)
	require.Equal(t, probe.Success, got.Outcome, got.Output)
}

func TestGRPC(t *testing.T) {
	h := health.NewServer()
	h.SetServingStatus("db", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	healthy := serveGRPC(t, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, h) })
	bare := serveGRPC(t, func(*grpc.Server) {})
	slow := serveGRPC(t, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, slowHealth{}) })
	db, none := "db", "none"
	for name, tc := range map[string]struct {
		action v1.GRPCAction
		want   probe.Outcome
		output string
	}{
		"serving":         {v1.GRPCAction{Port: healthy}, probe.Success, "service healthy"},
		"not serving":     {v1.GRPCAction{Port: healthy, Service: &db}, probe.Failure, `service unhealthy (responded with "NOT_SERVING")`},
		"unknown service": {v1.GRPCAction{Port: healthy, Service: &none}, probe.Failure, "error: health rpc probe failed"},
		"no health":       {v1.GRPCAction{Port: bare}, probe.Failure, "this server does not implement the grpc health protocol"},
		"slow":            {v1.GRPCAction{Port: slow}, probe.Failure, "timeout: health rpc did not complete within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			got := newFixture(nil).Check(t.Context(), target(v1.ProbeHandler{GRPC: &tc.action}))
			require.Equal(t, tc.want, got.Outcome, got.Output)
			require.Contains(t, got.Output, tc.output)
		})
	}
}
