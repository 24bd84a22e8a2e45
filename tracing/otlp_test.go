package tracing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/tracing"
)

// request is what a reader of OTLP JSON needs of it.
type request struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID           string `json:"traceId"`
				SpanID            string `json:"spanId"`
				Parent            string `json:"parentSpanId"`
				Name              string
				StartTimeUnixNano string
				Attributes        []struct {
					Key   string
					Value map[string]any
				}
				Status struct {
					Code    int
					Message string
				}
			}
		}
	}
}

func TestWriteOTLP(t *testing.T) {
	j := journal.New(journal.Options{})
	shortStart(j, "u")
	ep := j.Episodes("u")[0]
	var b bytes.Buffer
	require.NoError(t, tracing.WriteOTLP(&b, map[string]string{"k8s.node.name": "n1"}, ep))
	var r request
	require.NoError(t, json.Unmarshal(b.Bytes(), &r))
	spans := r.ResourceSpans[0].ScopeSpans[0].Spans
	require.Len(t, spans, 3, "the time until it was found ready has a span")
	require.Equal(t, tracing.TraceID(&ep), spans[0].TraceID)
	require.Equal(t, spans[0].SpanID, spans[1].Parent)
	require.Equal(t, "container", spans[1].Name)
	require.Regexp(t, "^[0-9]{19}$", spans[0].StartTimeUnixNano)
	require.Contains(t, b.String(), `{"key":"flowlet.attempt","value":{"intValue":"1"}}`)
	require.Contains(t, b.String(), `{"key":"k8s.node.name","value":{"stringValue":"n1"}}`)
	require.Contains(t, b.String(), `{"key":"flowlet.critical_path","value":{"arrayValue":{"values":[{"stringValue":`)
}

func TestWriteOTLPOfAFailure(t *testing.T) {
	j := journal.New(journal.Options{})
	j.Begin("u", journal.Start, at(0))
	run := dag.Entry{Key: dag.Key{Do: "pull"}, State: dag.Running, Since: at(1), Attempt: 1}
	j.Moved("u", id("image", "i"), dag.Entry{}, run)
	lost := dag.Entry{Key: dag.Key{Do: "pull"}, State: dag.Lost, Since: at(5), Attempt: 1, Err: pod.WithReason("ErrImagePull", dag.ErrDeadline)}
	j.Moved("u", id("image", "i"), run, lost)
	held := dag.Entry{Key: dag.Key{Do: "run"}, State: dag.Held, Since: at(1), Why: "no network"}
	j.Moved("u", id("sandbox", ""), dag.Entry{}, held)
	var b bytes.Buffer
	require.NoError(t, tracing.WriteOTLP(&b, nil, j.Episodes("u")...))
	var r request
	require.NoError(t, json.Unmarshal(b.Bytes(), &r))
	spans := r.ResourceSpans[0].ScopeSpans[0].Spans
	var names []string
	for _, s := range spans {
		names = append(names, s.Name)
		if s.Name == "image" {
			require.Equal(t, 2, s.Status.Code)
			require.Equal(t, dag.ErrDeadline.Error(), s.Status.Message)
		}
	}
	require.Subset(t, names, []string{"pod.start", "image", "sandbox", "hold"}, "what never ran is told too")
	require.Contains(t, b.String(), `"not run"`)
	require.Contains(t, b.String(), `"lost"`)
}

func TestTraceFilesAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	c := tracing.Config{Directory: dir, Files: 3}
	require.True(t, c.Enabled())
	for _, starts := range []int{2, 4} { // the second agent finds files of the first
		p, err := tracing.New(t.Context(), c, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		j := journal.New(journal.Options{Ended: p.Ended})
		for range starts {
			shortStart(j, "u")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the agent stops"))
		require.NoError(t, p.Run(ctx))
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, min(starts, 3))
		data, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
		require.NoError(t, err)
		require.True(t, json.Valid(data))
	}
}
