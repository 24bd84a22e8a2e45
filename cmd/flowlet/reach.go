package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/internal/server/remote"
)

// defaultContainer is the annotation that says which container is meant when
// none is named.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// reach are the flags of commands that reach into a container.
type reach struct {
	ask
	container string
}

func (r *reach) flags(cmd *cobra.Command) {
	r.rootFlag(cmd)
	cmd.Flags().StringVarP(&r.container, "container", "c", "",
		"container; without it that of the annotation "+defaultContainer+", else the first")
}

func (a *ask) remote() *remote.Client {
	return remote.NewClient(filepath.Join(a.root, server.SocketName))
}

// pod asks for the pod that is meant.
func (a *ask) pod(ctx context.Context, ref string) (*v1.Pod, remote.Target, error) {
	d, err := a.client().Pod(ctx, ref)
	if err != nil {
		return nil, remote.Target{}, err
	}
	return d.Pod, remote.Target{Namespace: d.Pod.Namespace, Pod: d.Pod.Name, UID: d.Pod.UID}, nil
}

// target asks for the pod and settles which container is meant. If that is a
// guess, notes says so.
func (r *reach) target(ctx context.Context, ref string, notes io.Writer) (*v1.Pod, remote.Target, error) {
	p, t, err := r.pod(ctx, ref)
	if err != nil {
		return nil, t, err
	}
	all := containers(p)
	switch {
	case r.container != "" && len(all) > 0 && !slices.Contains(all, r.container):
		return nil, t, fmt.Errorf("container %q not found in pod %s/%s: it has %s", r.container, p.Namespace, p.Name, strings.Join(all, ", "))
	case r.container != "":
		t.Container = r.container
	case slices.Contains(all, p.Annotations[defaultContainer]):
		t.Container = p.Annotations[defaultContainer]
	case len(p.Spec.Containers) == 0:
		return nil, t, fmt.Errorf("pod %s/%s has no spec here: name the container with -c", p.Namespace, p.Name)
	default:
		t.Container = p.Spec.Containers[0].Name
		if len(all) > 1 {
			fmt.Fprintf(notes, "Container %s, of %s\n", t.Container, strings.Join(all, ", "))
		}
	}
	return p, t, nil
}

// containers are the names of all containers, in the order of their start.
func containers(p *v1.Pod) []string {
	var out []string
	for i := range p.Spec.InitContainers {
		out = append(out, p.Spec.InitContainers[i].Name)
	}
	for i := range p.Spec.Containers {
		out = append(out, p.Spec.Containers[i].Name)
	}
	for i := range p.Spec.EphemeralContainers {
		out = append(out, p.Spec.EphemeralContainers[i].Name)
	}
	return out
}
