package devnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

// Jaeger is a running Jaeger on loopback. It keeps traces in memory.
type Jaeger struct {
	OTLP  string // host:port that takes traces, OTLP over gRPC
	Query string // URL of the query API, without a slash at the end

	process *daemon
}

// The ports that Jaeger has by default.
const (
	otlpGRPC  = 4317
	otlpHTTP  = 4318
	queryGRPC = 16685
	queryHTTP = 16686
)

// StartJaeger starts Jaeger with its configuration and log below dir, and waits until it is ready. Its usual ports are
// taken where they are free. It needs no node. If it has never been built, building it takes long: log tells.
// Stop has to be called.
func StartJaeger(ctx context.Context, dir string, log io.Writer) (*Jaeger, error) {
	programs, err := toolbox.Jaeger(ctx, log)
	if err != nil {
		return nil, err
	}
	at, err := freePorts(ctx, otlpGRPC, otlpHTTP, queryGRPC, queryHTTP)
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(jaegerConfig(at))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "jaeger.yaml")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(programs, "jaeger"), "--config", file)
	// Ctrl-C is not for it: what flowlet does to end its pods is traced, too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	// It would trace itself, send that to whoever has the usual port, and at its end wait ten seconds for it.
	cmd.Env = append(os.Environ(), "OTEL_TRACES_SAMPLER=always_off")
	j := &Jaeger{OTLP: at[otlpGRPC], Query: "http://" + at[queryHTTP]}
	if j.process, err = startDaemon(cmd, filepath.Join(dir, "log", "jaeger.log")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := j.process.await(ctx, j.ready); err != nil {
		return nil, errors.Join(err, j.Stop(context.WithoutCancel(ctx)))
	}
	return j, nil
}

// Stop ends Jaeger; its traces are gone.
func (j *Jaeger) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return j.process.stop(ctx)
}

// ready says whether both sides are served.
func (j *Jaeger) ready(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", j.OTLP)
	if err != nil {
		return err
	}
	_ = conn.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.Query+"/api/services", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	return nil
}

// jaegerConfig is as small as it can be: OTLP in, memory, the query API. What Jaeger has besides in its own default
// configuration takes a dozen more ports.
func jaegerConfig(at map[int]string) map[string]any {
	endpoint := func(port int) map[string]any { return map[string]any{"endpoint": at[port]} }
	const store = "memory"
	return map[string]any{
		"service": map[string]any{
			"extensions": []string{"jaeger_storage", "jaeger_query"},
			"pipelines": map[string]any{"traces": map[string]any{
				"receivers": []string{"otlp"}, "exporters": []string{"jaeger_storage_exporter"},
			}},
			"telemetry": map[string]any{"metrics": map[string]any{"level": "none"}},
		},
		"extensions": map[string]any{
			"jaeger_storage": map[string]any{"backends": map[string]any{store: map[string]any{"memory": map[string]any{"max_traces": 10000}}}},
			"jaeger_query": map[string]any{
				"storage": map[string]any{"traces": store}, "http": endpoint(queryHTTP), "grpc": endpoint(queryGRPC),
			},
		},
		"receivers": map[string]any{"otlp": map[string]any{"protocols": map[string]any{"grpc": endpoint(otlpGRPC), "http": endpoint(otlpHTTP)}}},
		"exporters": map[string]any{"jaeger_storage_exporter": map[string]any{"trace_storage": store}},
	}
}

// freePorts finds a loopback address for each wanted port: that port, or any other where it is taken.
func freePorts(ctx context.Context, wanted ...int) (map[int]string, error) {
	at := map[int]string{}
	var config net.ListenConfig
	for _, port := range wanted {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			l, err = config.Listen(ctx, "tcp", "127.0.0.1:0")
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all are held until all are found
		at[port] = l.Addr().String()
	}
	return at, nil
}
