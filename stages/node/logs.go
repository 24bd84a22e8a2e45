package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kinds of the stages of the chore "logs".
const (
	KindLogLook   = "log.look"
	KindLogRotate = "log.rotate"
)

// Log is the log file of a running container.
type Log struct {
	Of   string // namespace/pod/container, for people
	ID   string // of the container
	Path string
}

// LogRuntime makes the runtime write to a new file after a log was renamed.
type LogRuntime interface {
	ReopenContainerLog(ctx context.Context, id string) error
}

// LogLimits bound the logs of a container, as containerLogMaxSize and its like.
type LogLimits struct {
	MaxSize  int64 // bytes at which a file is rotated
	MaxFiles int   // of a container, the one that is written included; 2 at the least
	Every    time.Duration
}

// Logs is the chore that rotates the logs of running containers. Each file is
// a stage of its own; the class [KindLogRotate] says how many at a time.
type Logs struct {
	limits  LogLimits
	running func() []Log
	rotator rotator
}

// NewLogs returns the chore. running lists the logs of running containers; it
// may be called concurrently.
func NewLogs(limits LogLimits, runtime LogRuntime, running func() []Log) *Logs {
	return &Logs{limits: limits, running: running, rotator: rotator{limits: limits, runtime: runtime, disk: disk{}}}
}

// Name implements Chore.
func (*Logs) Name() string { return "logs" }

// Every implements Chore.
func (l *Logs) Every() time.Duration { return l.limits.Every }

// logFacts is what a look at all logs found.
type logFacts struct {
	turn uint64
	full []Log
	lost map[string]bool // containers whose missing file was asked for once
}

// Stages implements Chore.
func (l *Logs) Stages(in In) []Stage {
	known, _ := in.Chore.Facts.(logFacts)
	turn := in.Chore.Asked
	stages := []Stage{{
		ID: dag.ID{Kind: KindLogLook}, Key: in.Turn("look for logs that are full"), Atomic: true,
		Run: func(context.Context) (pod.Facts, error) {
			facts, err := l.look(turn, known)
			return pod.Facts{pod.Learnt{Facts: facts}}, err
		},
	}}
	for _, log := range known.full {
		stages = append(stages, Stage{
			ID:  dag.ID{Kind: KindLogRotate, Of: log.Of + "@" + log.ID[:min(len(log.ID), 12)]},
			Key: dag.Key{Do: "rotate " + log.Path, In: known.turn}, Owns: "log/" + log.ID, Atomic: true,
			Run: func(ctx context.Context) (pod.Facts, error) { return nil, l.rotator.rotate(ctx, log) },
		})
	}
	return stages
}

// look finds the logs that have work. A file that is missing is asked for only
// once: a runtime may write its logs elsewhere.
func (l *Logs) look(turn uint64, known logFacts) (logFacts, error) {
	found := logFacts{turn: turn, lost: map[string]bool{}}
	var errs []error
	for _, log := range l.running() {
		info, err := os.Stat(log.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if !known.lost[log.ID] {
				found.full = append(found.full, log)
			}
			found.lost[log.ID] = true
		case err != nil:
			errs = append(errs, fmt.Errorf("log of %s: %w", log.Of, err))
		case info.Size() >= l.limits.MaxSize:
			found.full = append(found.full, log)
		}
	}
	return found, errors.Join(errs...)
}
