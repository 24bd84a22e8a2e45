package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kinds of the stages of the chore "orphans".
const (
	KindOrphanLook   = "orphan.look"
	KindOrphanLinks  = "orphan.links"
	KindOrphanCgroup = "orphan.cgroup"
	KindOrphanDirs   = "orphan.dirs"
)

// Remover removes what is left of a pod, of which only the UID is known.
type Remover interface {
	Remove(ctx context.Context, s *pod.State) error
}

// OrphanDirs finds and removes directories of pods.
type OrphanDirs interface {
	Remover
	PodUIDs() ([]types.UID, error)
}

// OrphanCgroups finds and removes cgroups of pods.
type OrphanCgroups interface {
	Remover
	PodUIDs(ctx context.Context) ([]types.UID, error)
}

// Unmounter undoes all mounts of a pod, of which only the UID is known.
type Unmounter interface {
	Unmount(ctx context.Context, s *pod.State) error
}

// OrphanConfig says what may be left of a pod, and who is none.
type OrphanConfig struct {
	// Known reports whether a pod of that UID is wanted, ending, or has
	// anything in the runtime, whoever wants it. It may be called concurrently.
	Known func(uid types.UID) bool
	// Running lists the logs of running containers.
	Running func() []Log
	// Dirs never removes anything across a mount.
	Dirs    OrphanDirs
	Volumes Unmounter
	Cgroups OrphanCgroups
	LinkDir string // of links to logs; empty: there are none
	LogRoot string // what those links lead to
}

// Orphans is the chore that removes what is left on the node of pods that
// nobody knows: cgroups with the processes in them, mounts and directories, and
// links to logs that are gone. What the runtime has of a pod makes it known: it
// is taken down as a pod is, or left alone when its source is not configured.
type Orphans struct{ OrphanConfig }

// Name implements Chore.
func (*Orphans) Name() string { return "orphans" }

// Every implements Chore: as often as the kubelet collects containers.
func (*Orphans) Every() time.Duration { return time.Minute }

// orphanFacts is what a look found.
type orphanFacts struct {
	turn          uint64
	cgroups, dirs []types.UID
}

// Stages implements Chore. Those of a UID own what the stages of a pod own, so
// a pod that comes meanwhile waits for them, and begins with nothing.
func (o *Orphans) Stages(in In) []Stage {
	known, _ := in.Chore.Facts.(orphanFacts)
	turn, hold := in.Chore.Asked, in.AfterSync()
	stages := []Stage{
		{
			ID: dag.ID{Kind: KindOrphanLook}, Key: in.Turn("look for what nobody knows"), Hold: hold, Atomic: true,
			Run: func(ctx context.Context) (pod.Facts, error) {
				facts, err := o.look(ctx, turn)
				return pod.Facts{pod.Learnt{Facts: facts}}, err
			},
		},
		{
			ID: dag.ID{Kind: KindOrphanLinks}, Key: in.Turn("remove links to logs that are gone"), Hold: hold, Atomic: true,
			Run: func(context.Context) (pod.Facts, error) { return nil, o.links() },
		},
	}
	for _, uid := range known.cgroups {
		stages = append(stages, o.orphan(KindOrphanCgroup, uid, known.turn, o.removeCgroup))
	}
	for _, uid := range known.dirs {
		s := o.orphan(KindOrphanDirs, uid, known.turn, o.removeDirs)
		if slices.Contains(known.cgroups, uid) {
			s.After = []dag.ID{{Kind: KindOrphanCgroup, Of: string(uid)}} // a process may keep a mount busy
		}
		stages = append(stages, s)
	}
	return stages
}

func (o *Orphans) look(ctx context.Context, turn uint64) (orphanFacts, error) {
	found := orphanFacts{turn: turn}
	cgroups, err := o.Cgroups.PodUIDs(ctx)
	dirs, derr := o.Dirs.PodUIDs()
	found.cgroups, found.dirs = slices.DeleteFunc(cgroups, o.Known), slices.DeleteFunc(dirs, o.Known)
	return found, errors.Join(err, derr)
}

func (o *Orphans) orphan(kind string, uid types.UID, turn uint64, remove func(context.Context, *pod.State) error) Stage {
	what, class := "dirs", "mount"
	if kind == KindOrphanCgroup {
		what, class = "cgroup", "cgroup"
	}
	return Stage{
		ID: dag.ID{Kind: kind, Of: string(uid)}, Key: dag.Key{Do: "remove what is left of pod " + string(uid), In: turn},
		Owns: pod.KeyOf(uid).Object(what), Class: class, Atomic: true,
		Run: func(ctx context.Context) (pod.Facts, error) {
			if o.Known(uid) {
				return nil, nil // it came meanwhile
			}
			return nil, remove(ctx, &pod.State{Identity: pod.Identity{UID: uid, Name: "of UID " + string(uid)}})
		},
	}
}

func (o *Orphans) removeCgroup(ctx context.Context, s *pod.State) error {
	if err := o.Cgroups.Remove(ctx, s); err != nil {
		return fmt.Errorf("cgroup that no pod has any more: %w", err)
	}
	return nil
}

func (o *Orphans) removeDirs(ctx context.Context, s *pod.State) error {
	if err := o.Volumes.Unmount(ctx, s); err != nil {
		return fmt.Errorf("directories that no pod has any more: %w", err)
	}
	if err := o.Dirs.Remove(ctx, s); err != nil {
		return fmt.Errorf("directories that no pod has any more: %w", err)
	}
	return nil
}

// links removes links below LinkDir that lead to a log that is gone. That of a
// running container stays: its log is missing only while it is rotated.
func (o *Orphans) links() error {
	if o.LinkDir == "" {
		return nil
	}
	entries, err := os.ReadDir(o.LinkDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("links to logs: %w", err)
	}
	running := map[string]bool{}
	for _, log := range o.Running() {
		running[log.Path] = true
	}
	var errs []error
	for _, e := range entries {
		link := filepath.Join(o.LinkDir, e.Name())
		target, err := os.Readlink(link)
		if err != nil || running[target] || !strings.HasPrefix(target, o.LogRoot+"/") {
			continue // no link, or not one of ours
		}
		if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("link to a log that is gone: %w", err))
		}
	}
	return errors.Join(errs...)
}
