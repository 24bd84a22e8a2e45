package crisim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Annotation of a pod scripts its containers: a JSON object from container name to a Script, or to a list of Scripts of
// which each attempt takes the next one and the last one stays. docs/sim.md has examples.
const Annotation = "sim.flowlet.dev/containers"

// Script is what a container does. Its zero value runs until it is stopped and ends at once with code 143 when it gets
// its stop signal.
type Script struct {
	Start *StartScript `json:"start,omitempty"`
	Exit  *ExitScript  `json:"exit,omitempty"`
	Term  *TermScript  `json:"term,omitempty"`
	Kill  *KillScript  `json:"kill,omitempty"`
	Log   []LogScript  `json:"log,omitempty"`
	Exec  []ExecScript `json:"exec,omitempty"`
	Use   []UseScript  `json:"use,omitempty"`
}

// StartScript makes StartContainer fail.
type StartScript struct {
	Error string `json:"error"`
}

// ExitScript ends the process by itself.
type ExitScript struct {
	After   Duration `json:"after,omitempty"` // since the start
	Code    int32    `json:"code,omitempty"`
	OOM     bool     `json:"oom,omitempty"` // killed for memory: code 137, reason OOMKilled
	Message string   `json:"message,omitempty"`
}

// TermScript is the answer to the stop signal.
type TermScript struct {
	Ignore bool     `json:"ignore,omitempty"`
	After  Duration `json:"after,omitempty"` // time the process takes to end
	Code   int32    `json:"code,omitempty"`  // default 0 when there is a TermScript
}

// KillScript makes even SIGKILL slow or useless, as for a process in an uninterruptible wait.
type KillScript struct {
	Ignore bool     `json:"ignore,omitempty"`
	After  Duration `json:"after,omitempty"`
}

// LogScript writes lines to the container's log.
type LogScript struct {
	Text   string   `json:"text"`             // {n} in it is the number of the line, from 1
	Every  Duration `json:"every,omitempty"`  // 0: once, at the start
	Count  int      `json:"count,omitempty"`  // lines in all, 0 without end
	Stream string   `json:"stream,omitempty"` // "stdout" (default) or "stderr"
}

// ExecScript answers ExecSync; the first that matches does. Without a match a command ends at once with code 0.
type ExecScript struct {
	Command string   `json:"command,omitempty"` // part of the command line; empty: any
	From    Duration `json:"from,omitempty"`    // applies that long after the start of the container …
	Until   Duration `json:"until,omitempty"`   // … and until then, 0 for ever
	After   Duration `json:"after,omitempty"`   // time the command takes
	Code    int32    `json:"code,omitempty"`
	Stdout  string   `json:"stdout,omitempty"`
	Stderr  string   `json:"stderr,omitempty"`
}

// UseScript is what a container takes of the node; the last one whose time has come applies, and only while the
// container runs (files stay). Without one a container takes nothing.
type UseScript struct {
	From      Duration                     `json:"from,omitempty"`      // that long after the start of the container
	Memory    resource.Quantity            `json:"memory,omitzero"`     // working set
	Disk      resource.Quantity            `json:"disk,omitzero"`       // written over the image
	Inodes    int64                        `json:"inodes,omitempty"`    // files written over the image
	Logs      resource.Quantity            `json:"logs,omitzero"`       // in log files
	Volumes   map[string]resource.Quantity `json:"volumes,omitempty"`   // in volumes, by name
	Processes int64                        `json:"processes,omitempty"` // that run
}

// Duration is written as in Go ("1m30s").
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration %s: want a string such as %q", b, "1m30s")
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	if v < 0 {
		return fmt.Errorf("duration %q is negative", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// scripts are those of one pod, with the text they were read from.
type scripts struct {
	text    string
	perName map[string][]Script
}

func parseScripts(annotations map[string]string) (scripts, error) {
	text := annotations[Annotation]
	if text == "" {
		return scripts{}, nil
	}
	var raw map[string]json.RawMessage
	if err := strict([]byte(text), &raw); err != nil {
		return scripts{}, badScript(err)
	}
	s := scripts{text: text, perName: map[string][]Script{}}
	for name, value := range raw {
		list, err := parseList(value)
		if err != nil {
			return scripts{}, badScript(fmt.Errorf("container %q: %w", name, err))
		}
		s.perName[name] = list
	}
	return s, nil
}

func parseList(value json.RawMessage) ([]Script, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) {
		var one Script
		err := strict(value, &one)
		return []Script{one}, err
	}
	var many []Script
	err := strict(value, &many)
	return many, err
}

func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func badScript(err error) error {
	return status.Errorf(codes.InvalidArgument, "pod annotation %s: %v", Annotation, err)
}

// orParse is s unless the annotations say something else by now.
func (s scripts) orParse(annotations map[string]string) (scripts, error) {
	if text := annotations[Annotation]; text == "" || text == s.text {
		return s, nil
	}
	return parseScripts(annotations)
}

// of is the script of one attempt of one container, nil for the default.
func (s scripts) of(m *runtimeapi.ContainerMetadata) *Script {
	list := s.perName[m.GetName()]
	if len(list) == 0 {
		return nil
	}
	return &list[min(int(m.GetAttempt()), len(list)-1)]
}
