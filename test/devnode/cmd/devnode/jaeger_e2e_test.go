//go:build e2e

package main_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

// jaegerTrace is a trace as Jaeger's query API shows it. Times are microseconds.
type jaegerTrace struct {
	TraceID string
	Spans   []jaegerSpan
}

type jaegerSpan struct {
	SpanID, OperationName string
	StartTime, Duration   int64
	References            []struct{ RefType, SpanID string }
	Tags                  []struct {
		Key   string
		Value any
	}
}

func (s jaegerSpan) tag(key string) any {
	for _, t := range s.Tags {
		if t.Key == key {
			return t.Value
		}
	}
	return nil
}

// parent is the span's parent, empty for a root.
func (s jaegerSpan) parent() string {
	for _, r := range s.References {
		if r.RefType == "CHILD_OF" {
			return r.SpanID
		}
	}
	return ""
}

// has says whether there is a span of that kind of stage, for that container if one is named.
func (t jaegerTrace) has(kind, container string) bool {
	return slices.ContainsFunc(t.Spans, func(s jaegerSpan) bool {
		return s.OperationName == kind && (container == "" || s.tag("container.name") == container)
	})
}

// The start of each example pod is one trace in Jaeger. Building Jaeger takes long, so this has to be asked for.
func TestJaegerHasTheStarts(t *testing.T) {
	if os.Getenv("FLOWLET_JAEGER") == "" {
		t.Skip("needs Jaeger, whose first build takes long: FLOWLET_JAEGER=1 runs it")
	}
	_, err := toolbox.Jaeger(t.Context(), os.Stderr)
	require.NoError(t, err)
	// Its usual port may be somebody else's.
	if l, err := net.Listen("tcp", "127.0.0.1:4317"); err == nil {
		defer func() { _ = l.Close() }()
	}
	var otlp, url string
	noLeak(t, func() *session {
		s := startRun(t, nil, "JAEGER=1")
		otlp = regexp.MustCompile(`OTLP on (\S+),`).FindStringSubmatch(s.until("Jaeger is up"))[1]
		require.NotEqual(t, "127.0.0.1:4317", otlp)
		url = regexp.MustCompile(`http://[^']*`).FindString(s.until("curl"))
		s.until("press Ctrl-C")
		starts := startTraces(t, url)
		for _, pod := range examples(t) {
			require.Len(t, starts[pod.Name], 1, "traces of the start of %s", pod.Name)
			checkStart(t, pod, starts[pod.Name][0])
		}
		require.Len(t, starts, len(examples(t)))
		require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
		s.end()
		return s
	})
	_, err = net.DialTimeout("tcp", otlp, time.Second)
	require.Error(t, err, "Jaeger still runs")
}

// startTraces are the traces by name of their pod, once there is one of each.
func startTraces(t *testing.T, url string) map[string][]jaegerTrace {
	t.Helper()
	var found map[string][]jaegerTrace
	require.Eventually(t, func() bool {
		var answer struct{ Data []jaegerTrace }
		require.NoError(t, json.Unmarshal([]byte(fetch(t, url)), &answer))
		found = map[string][]jaegerTrace{}
		for _, trace := range answer.Data {
			name := podName(t, trace.Spans[0])
			found[name] = append(found[name], trace)
		}
		return len(found) >= len(examples(t))
	}, time.Minute, 500*time.Millisecond, "traces of %v", &found)
	return found
}

// podName is the name in the manifest of the pod that a span is about: the pod's own has the node's name at its end.
func podName(t *testing.T, s jaegerSpan) string {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	name, _ := s.tag("k8s.pod.name").(string)
	return strings.TrimSuffix(name, "-"+strings.ToLower(host))
}

// checkStart requires one tree below pod.start with the stages of the pod.
func checkStart(t *testing.T, pod corev1.Pod, trace jaegerTrace) {
	t.Helper()
	spans := map[string]jaegerSpan{}
	for _, s := range trace.Spans {
		spans[s.SpanID] = s
	}
	var roots []jaegerSpan
	for _, s := range trace.Spans {
		require.Equal(t, pod.Name, podName(t, s), s.OperationName)
		if s.parent() == "" {
			roots = append(roots, s)
			continue
		}
		up, ok := spans[s.parent()]
		require.True(t, ok, "%s: the parent of span %s is missing", pod.Name, s.OperationName)
		require.GreaterOrEqual(t, s.StartTime, up.StartTime, "%s: %s in %s", pod.Name, s.OperationName, up.OperationName)
		if up.parent() == "" {
			continue // what goes on when the pod is ready ends after the root
		}
		const rounding = 1
		require.LessOrEqual(t, s.StartTime+s.Duration, up.StartTime+up.Duration+rounding, "%s: %s in %s", pod.Name, s.OperationName, up.OperationName)
	}
	require.Len(t, roots, 1, pod.Name)
	require.Equal(t, "pod.start", roots[0].OperationName)

	for _, kind := range []string{"admit", "cgroup", "dirs", "image", "sandbox", "RunPodSandbox", "CreateContainer", "StartContainer"} {
		require.True(t, trace.has(kind, ""), "%s has no span %s", pod.Name, kind)
	}
	require.Equal(t, len(pod.Spec.Volumes) > 0, trace.has("volume", ""), "%s: span volume", pod.Name)
	for _, c := range pod.Spec.InitContainers {
		require.True(t, trace.has("init", c.Name), "%s has no span init of %s", pod.Name, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		require.True(t, trace.has("container", c.Name), "%s has no span container of %s", pod.Name, c.Name)
	}
}

// examples are the pods that make run starts.
func examples(t *testing.T) []corev1.Pod {
	t.Helper()
	repo, err := toolbox.Repo()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(repo, "examples", "pods", "*.yaml"))
	require.NoError(t, err)
	pods := make([]corev1.Pod, len(files))
	for i, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(b, &pods[i]))
	}
	return pods
}
