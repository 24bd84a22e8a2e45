package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/flowlet/flowlet/internal/plain"
)

// kind is the form of a flag's text.
type kind string

const (
	kindBool     kind = "bool"
	kindInt32    kind = "int32"
	kindInt64    kind = "int64"
	kindDuration kind = "duration"
	kindString   kind = "string"
	kindPath     kind = "path"     // a file, relative to the working directory
	kindIP       kind = "ip"       // an IP address
	kindList     kind = "strings"  // a,b
	kindMap      kind = "k=v"      // a=1,b=2
	kindLess     kind = "k<v"      // a<1,b<2
	kindMulti    kind = "k:v"      // a:1,a:2,b:3
	kindBools    kind = "k=bool"   // A=true,B=false
	kindOneMap   kind = "k=v,v"    // a=1,2: one pair per flag
	kindVModule  kind = "file=N"   // a=1,b=2
	kindTaints   kind = "taints"   // k=v:Effect,...
	kindMemory   kind = "reserved" // node:memory=1Gi,hugepages-2Mi=1Gi;node:...
)

// flagValue keeps a flag as the JSON value of the field that it sets.
type flagValue struct {
	kind kind
	text string
	json any
	set  bool
}

var _ pflag.Value = (*flagValue)(nil)

// String returns the text as given, "" for none.
func (v *flagValue) String() string { return v.text }

// Type names the form for the usage text.
func (v *flagValue) Type() string { return string(v.kind) }

// Set parses the text. Lists and maps grow when a flag is repeated, anything
// else is replaced.
func (v *flagValue) Set(text string) error {
	value, err := v.kind.parse(text, v.json)
	if err != nil {
		return err
	}
	v.text, v.json, v.set = text, value, true
	return nil
}

func (k kind) parse(text string, old any) (any, error) {
	switch k {
	case kindBool:
		on, err := strconv.ParseBool(text)
		return on, or(err, "must be true or false")
	case kindInt32:
		n, err := strconv.ParseInt(text, 0, 32)
		return n, or(err, "must be an integer")
	case kindInt64:
		n, err := strconv.ParseInt(text, 0, 64)
		return n, or(err, "must be an integer")
	case kindDuration:
		d, err := time.ParseDuration(text)
		return d.String(), or(err, "must be a duration with its unit, such as 20s or 1h30m")
	case kindPath:
		if text == "" {
			return "", nil
		}
		return filepath.Abs(text)
	case kindIP:
		if net.ParseIP(text) == nil {
			return nil, fmt.Errorf("%q is not an IP address", text)
		}
		return text, nil
	case kindList:
		return append(asList(old), splitList(text)...), nil
	case kindTaints:
		return parseTaints(text)
	case kindMemory:
		return parseMemory(text, asList(old))
	case kindVModule:
		return parseVModule(text)
	case kindMap, kindLess, kindMulti, kindBools, kindOneMap:
		return k.parseMap(text, old)
	case kindString:
	}
	return text, nil
}

// or says in place of an error what is wanted.
func or(err error, wanted string) error {
	if err == nil {
		return nil
	}
	return errors.New(wanted)
}

func asList(v any) []any {
	list, _ := v.([]any)
	if list == nil {
		return []any{} // an empty flag empties the field
	}
	return list
}

func splitList(text string) []any {
	var out []any
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func (k kind) parseMap(text string, old any) (any, error) {
	out := map[string]any{}
	if m, ok := old.(map[string]any); ok {
		maps.Copy(out, m)
	}
	pairs, sep := splitList(text), "="
	switch k {
	case kindLess:
		sep = "<"
	case kindMulti:
		sep = ":"
	case kindOneMap:
		if pairs = nil; text != "" {
			pairs = []any{text}
		}
	default:
	}
	for _, pair := range pairs {
		name, value, found := strings.Cut(pair.(string), sep)
		if !found {
			return nil, fmt.Errorf("%q is not of the form name%svalue", pair, sep)
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch k {
		case kindMulti:
			out[name] = append(asList(out[name]), value)
		case kindBools:
			on, err := strconv.ParseBool(value)
			if err != nil {
				return nil, fmt.Errorf("%s=%s: true or false is wanted", name, value)
			}
			out[name] = on
		default:
			out[name] = value
		}
	}
	return out, nil
}

func parseTaints(text string) (any, error) {
	out := []any{}
	for _, part := range splitList(text) {
		pair, effect, ok := strings.Cut(part.(string), ":")
		key, value, _ := strings.Cut(pair, "=")
		if !ok || key == "" || effect == "" {
			return nil, fmt.Errorf("%q is not of the form key=value:Effect", part)
		}
		out = append(out, map[string]any{"key": key, "value": value, "effect": effect})
	}
	return out, nil
}

func parseMemory(text string, out []any) (any, error) {
	for part := range strings.SplitSeq(text, ";") {
		if part == "" {
			continue
		}
		node, limits, ok := strings.Cut(part, ":")
		n, err := strconv.ParseInt(node, 10, 32)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not of the form node:type=quantity[,type=quantity]", part)
		}
		m, err := kindMap.parseMap(limits, nil)
		if err != nil {
			return nil, err
		}
		for name, q := range m.(map[string]any) {
			if _, err := plain.Parse(q.(string)); err != nil {
				return nil, fmt.Errorf("%s=%s: %w", name, q, err)
			}
		}
		out = append(out, map[string]any{"numaNode": n, "limits": m})
	}
	return out, nil
}

func parseVModule(text string) (any, error) {
	out := []any{}
	for _, part := range splitList(text) {
		pattern, level, ok := strings.Cut(part.(string), "=")
		n, err := strconv.ParseInt(level, 10, 32)
		if !ok || err != nil || n < 0 || pattern == "" {
			return nil, fmt.Errorf("%q is not of the form pattern=N", part)
		}
		out = append(out, map[string]any{"filePattern": pattern, "verbosity": n})
	}
	return out, nil
}
