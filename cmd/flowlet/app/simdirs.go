package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/sandbox"
)

// SimDirs are the directories of pods of the embedded simulated runtime: those
// of its logs, which the runtime makes, and no others.
type SimDirs struct {
	NoDirs
	Logs string
}

// Remove implements graph.Dirs.
func (d SimDirs) Remove(_ context.Context, s *pod.State) error {
	i := s.Identity
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name, UID: i.UID}}
	if err := os.RemoveAll(sandbox.LogDir(d.Logs, p)); err != nil {
		return fmt.Errorf("removing the simulated logs of %s/%s: %w", i.Namespace, i.Name, err)
	}
	return nil
}

// Clear removes what an earlier run has logged: its containers are no more,
// and attempts count from 0 again.
func (d SimDirs) Clear() error {
	dirs, err := filepath.Glob(filepath.Join(d.Logs, "*_*_*"))
	if err != nil {
		return fmt.Errorf("removing the simulated logs of an earlier run: %w", err)
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing the simulated logs of an earlier run: %w", err)
		}
	}
	return nil
}
