package tracing

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowlet/flowlet/internal/journal"
)

// WriteOTLP writes episodes as OTLP JSON (ExportTraceServiceRequest), the form
// that collectors and viewers read from files. An open episode ends now.
// attributes are those of the resource besides service.name.
func WriteOTLP(w io.Writer, attributes map[string]string, episodes ...journal.Episode) error {
	var spans []span
	for i := range episodes {
		e := episodes[i]
		if e.Ended.IsZero() {
			e.Ended = time.Now()
		}
		spans = append(spans, treeOf(&e)...)
	}
	return writeSpans(w, resourceOf(Config{Attributes: attributes}), spans)
}

func writeSpans(w io.Writer, resource []attribute.KeyValue, spans []span) error {
	out := make([]otlpSpan, len(spans))
	for i := range spans {
		out[i] = otlpOf(&spans[i])
	}
	all := otlpRequest{ResourceSpans: []otlpResourceSpans{{
		Resource:   otlpResource{Attributes: otlpAttributes(resource)},
		ScopeSpans: []otlpScopeSpans{{Scope: otlpScope{Name: scope}, Spans: out}},
	}}}
	if err := json.NewEncoder(w).Encode(all); err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	return nil
}

// The messages of OTLP in their JSON form: IDs in hex, 64-bit numbers as text.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Flags      uint32          `json:"flags"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Links      []otlpLink      `json:"links,omitempty"`
		Status     *otlpStatus     `json:"status,omitempty"`
	}
	otlpLink struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string    `json:"stringValue,omitempty"`
		Int    *string    `json:"intValue,omitempty"`
		Array  *otlpArray `json:"arrayValue,omitempty"`
	}
	otlpArray struct {
		Values []otlpValue `json:"values"`
	}
)

// statusError is STATUS_CODE_ERROR.
const statusError = 2

func otlpOf(s *span) otlpSpan {
	out := otlpSpan{
		TraceID: s.trace.String(), SpanID: s.id.String(), Flags: uint32(trace.FlagsSampled), Name: s.name, Kind: int(s.kind),
		Start: strconv.FormatInt(s.from.UnixNano(), 10), End: strconv.FormatInt(s.to.UnixNano(), 10), Attributes: otlpAttributes(s.attrs),
	}
	if s.parent.IsValid() {
		out.Parent = s.parent.String()
	}
	if s.link.IsValid() {
		out.Links = []otlpLink{{TraceID: s.link.TraceID().String(), SpanID: s.link.SpanID().String()}}
	}
	if s.failed {
		out.Status = &otlpStatus{Code: statusError, Message: s.message}
	}
	return out
}

func otlpAttributes(attrs []attribute.KeyValue) []otlpAttribute {
	out := make([]otlpAttribute, len(attrs))
	for i, a := range attrs {
		out[i] = otlpAttribute{Key: string(a.Key), Value: otlpValueOf(a.Value)}
	}
	return out
}

func otlpValueOf(v attribute.Value) otlpValue {
	switch v.Type() {
	case attribute.INT64:
		text := strconv.FormatInt(v.AsInt64(), 10)
		return otlpValue{Int: &text}
	case attribute.STRINGSLICE:
		list := &otlpArray{Values: []otlpValue{}}
		for _, s := range v.AsStringSlice() {
			list.Values = append(list.Values, otlpValue{String: &s})
		}
		return otlpValue{Array: list}
	default:
		text := v.String()
		if v.Type() == attribute.STRING {
			text = v.AsString()
		}
		return otlpValue{String: &text}
	}
}
