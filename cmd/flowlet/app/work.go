package app

import (
	"context"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/sources/pleg"
	"github.com/flowlet/flowlet/stages/admit"
	"github.com/flowlet/flowlet/stages/container"
	"github.com/flowlet/flowlet/stages/evict"
	"github.com/flowlet/flowlet/stages/graph"
	"github.com/flowlet/flowlet/stages/image"
	"github.com/flowlet/flowlet/stages/node"
	"github.com/flowlet/flowlet/stages/resize"
	"github.com/flowlet/flowlet/stages/sandbox"
)

// Node is what the agent knows and changes of the machine besides the runtime.
type Node struct {
	Admission admit.Config
	IPs       []string
	Cgroups   Cgroups
	Dirs      Dirs
	Volumes   Volumes
	Sandbox   sandbox.Settings
	Container container.Settings
	Keys      image.Credentials // nil: pulls are anonymous
	Logs      *node.LogLimits   // nil: logs are not rotated
	// Usage is nil where the node's use is not measured: then nothing is
	// evicted and no image is removed.
	Usage      Usage
	Thresholds []evict.Threshold
	// Orphans says what may be left of pods; the agent adds who is known. Nil:
	// nothing of unknown pods is removed.
	Orphans *node.OrphanConfig
}

// Cgroups makes pods' cgroups and names them for the runtime.
type Cgroups interface {
	graph.Cgroups
	resize.Cgroups
	ParentFor(p *v1.Pod) string
}

// Dirs makes pods' directories and the files in them.
type Dirs interface {
	graph.Dirs
	container.Files
}

// Volumes sets volumes up and says where they are.
type Volumes interface {
	graph.Volumes
	container.Volumes
}

func graphConfig(c *config.Config) *graph.Config {
	most := 300 * time.Second
	if m := c.Kubelet.CrashLoopBackOff.MaxContainerRestartPeriod; m != nil {
		most = m.Duration
	}
	registry := memoize(image.Registry)
	if c.SharedPullQueue() {
		registry = nil
	}
	// A name cannot have the separator in it.
	hash := memoize(func(in string) string {
		name, ref, _ := strings.Cut(in, "\n")
		return manifest.ContainerHash(&v1.Container{Name: name, Image: ref})
	})
	return &graph.Config{
		CrashInitial:  10 * time.Second,
		CrashMax:      most,
		Kept:          c.Dead.PerContainer,
		KeptFor:       c.Dead.MinAge,
		ContainerHash: func(name, ref string) string { return hash(name + "\n" + ref) },
		Registry:      registry,
		Started:       time.Now(),
		RuntimeSource: pleg.Name,
	}
}

// work is what the stages do, on this node and this runtime.
func (a *Agent) work(p Parts, ledger *admit.Ledger, made *container.Containers) *graph.Work {
	n := p.Node
	n.Sandbox.CgroupParent, n.Sandbox.Features = n.Cgroups.ParentFor, a.handler
	return &graph.Work{
		Observer:   observer{a.PLEG},
		Admission:  ledger,
		Cgroups:    n.Cgroups,
		Dirs:       n.Dirs,
		Volumes:    n.Volumes,
		Images:     a.images,
		Sandboxes:  sandbox.New(p.Runtime, a.Events, n.Sandbox),
		Containers: containers{made},
		Hooks:      newHooks(p, a.Events),
		Probes:     newProbes(p, a.Events),
		Records:    a.Records,
		Resizer:    &resize.Resizer{Runtime: p.Runtime, Cgroups: n.Cgroups, Containers: made, Period: n.Container.Period},
		Removed: func(k pod.Key) bool {
			s := a.state(k)
			return s != nil && s.Removal != nil
		},
	}
}

func (a *Agent) containers(p Parts) *container.Containers {
	return container.New(container.Config{
		Runtime: p.Runtime, Events: a.Events, Volumes: p.Node.Volumes, Files: p.Node.Dirs,
		Hash: manifest.ContainerHash, Settings: p.Node.Container, Handler: a.handler,
		ImageVolumes: a.mountsImages, Log: p.Log,
	})
}

// The types below give the stages' packages the shape that the graph wants.

type observer struct{ *pleg.Source }

func (o observer) Look(ctx context.Context, k pod.Key) (pod.Facts, error) {
	return o.Source.Look(ctx, k.UID())
}

type containers struct{ *container.Containers }

func (c containers) Start(ctx context.Context, s graph.Start) (pod.Facts, error) {
	return c.Containers.Start(ctx, container.Start(s))
}
