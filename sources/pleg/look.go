package pleg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Look reads everything the runtime has of one pod, with all details that are
// not known yet, and returns it as one pod.Observed. With an error that is about
// details it returns what is known without them. It may be called while Run
// does not run.
func (s *Source) Look(ctx context.Context, uid types.UID) (pod.Facts, error) {
	o, err := s.look(ctx, uid)
	if err != nil {
		err = fmt.Errorf("looking at what the runtime has of pod %s: %w", uid, err)
	}
	if o == nil {
		return nil, err
	}
	return pod.Facts{*o}, err
}

// look returns nil where not even the lists can be had.
func (s *Source) look(ctx context.Context, uid types.UID) (*pod.Observed, error) {
	o := pod.Observed{Began: time.Now(), Identity: pod.Identity{UID: uid}}
	label := map[string]string{pod.LabelPodUID: string(uid)}
	sandboxes, err := s.cfg.Runtime.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	containers, err := s.cfg.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	for _, sb := range sandboxes {
		addSandbox(&o, sb)
	}
	for _, c := range containers {
		addContainer(&o, c)
	}
	err = s.detail(ctx, &o)
	o.Ended = time.Now()
	return &o, err
}

func addSandbox(o *pod.Observed, sb *runtimeapi.PodSandbox) {
	o.Sandboxes = append(o.Sandboxes, crifact.Sandbox(sb))
	if id := crifact.Identity(sb.GetLabels(), sb.GetAnnotations()); o.Identity.Name == "" || o.Identity.Source == "" {
		o.Identity = id
	}
}

func addContainer(o *pod.Observed, c *runtimeapi.Container) {
	o.Containers = append(o.Containers, crifact.Container(c))
	if o.Identity.Name == "" {
		o.Identity = crifact.Identity(c.GetLabels(), c.GetAnnotations())
	}
}

// detail asks for what a look's rows do not say and nobody knows yet. What
// cannot be read stays a row.
func (s *Source) detail(ctx context.Context, o *pod.Observed) error {
	st := s.cfg.State(pod.KeyOf(o.Identity.UID))
	var errs []error
	for i := range o.Sandboxes {
		if sb := &o.Sandboxes[i]; !knowsSandbox(st, sb) {
			errs = append(errs, s.detailSandbox(ctx, sb))
		}
	}
	for i := range o.Containers {
		if c := &o.Containers[i]; !knowsContainer(st, c) {
			errs = append(errs, s.detailContainer(ctx, c))
		}
	}
	// What went away between the list and the read is not there.
	o.Sandboxes = slices.DeleteFunc(o.Sandboxes, func(sb pod.Sandbox) bool { return sb.Gone })
	o.Containers = slices.DeleteFunc(o.Containers, func(c pod.Container) bool { return c.Gone })
	return errors.Join(errs...)
}

func (s *Source) detailSandbox(ctx context.Context, sb *pod.Sandbox) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.CallTimeout, errSlow)
	defer cancel()
	st, err := s.cfg.Runtime.PodSandboxStatus(ctx, sb.ID)
	switch {
	case crifact.NotFound(err):
		sb.Gone = true
		return nil
	case err != nil:
		return fmt.Errorf("sandbox %s: %w", sb.ID, err)
	}
	ready := sb.Ready
	*sb = crifact.SandboxStatus(st)
	sb.Ready = sb.Ready && ready // it never gets ready again
	return nil
}

func (s *Source) detailContainer(ctx context.Context, c *pod.Container) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.CallTimeout, errSlow)
	defer cancel()
	st, err := s.cfg.Runtime.ContainerStatus(ctx, c.ID)
	switch {
	case crifact.NotFound(err):
		c.Gone = true
		return nil
	case err != nil:
		return fmt.Errorf("container %s: %w", c.ID, err)
	}
	sandbox := c.SandboxID
	*c = crifact.ContainerStatus(st)
	c.SandboxID = sandbox
	s.finish(c, st)
	return nil
}

// finish completes what a status says about a container that has ended.
func (s *Source) finish(c *pod.Container, st *runtimeapi.ContainerStatus) {
	if s.cfg.Finish != nil && c.State == pod.Exited {
		s.cfg.Finish(c, st)
	}
}

// Causes of calls that were given up.
var (
	errSlow   = errors.New("the runtime does not answer about it")
	errSilent = errors.New("the runtime does not answer")
)

// knowsSandbox reports whether the runtime's status of a sandbox would tell
// nothing new. One that has no address may still get one.
func knowsSandbox(st *pod.State, row *pod.Sandbox) bool {
	if st == nil {
		return false
	}
	for i := range st.Sandboxes {
		if sb := &st.Sandboxes[i]; sb.ID == row.ID {
			return sb.Detailed && (!row.Ready || sb.HostNetwork || len(sb.IPs) > 0)
		}
	}
	return false
}

// knowsContainer is the same for a container: its state has to be known in
// detail, or a later one.
func knowsContainer(st *pod.State, row *pod.Container) bool {
	c := find(st, row.ID)
	return c != nil && (c.State > row.State || (c.State == row.State && c.Detailed))
}

func find(st *pod.State, id string) *pod.Container {
	if st == nil {
		return nil
	}
	for i := range st.Containers {
		if st.Containers[i].ID == id {
			return &st.Containers[i]
		}
	}
	return nil
}
