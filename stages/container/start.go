package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Start is one start of a container.
type Start struct {
	State     *pod.State // with the pod's spec and the sandbox
	Container *v1.Container
	Init      bool
	Attempt   uint32
	SandboxID string
	Sandbox   *runtimeapi.PodSandboxConfig // the request the sandbox was made with
	Existing  string                       // a created container of this attempt: it is started, none is made
	Image     pod.Image
	// Removed reports whether the pod is to go by now: then what was just made
	// is not started. Optional.
	Removed func() bool
}

// users returns the IDs of the user namespace that the sandbox has of its own;
// nil where it shares the node's.
func (st *Start) users() *runtimeapi.UserNamespace {
	u := st.Sandbox.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	if u.GetMode() != runtimeapi.NamespaceMode_POD || len(u.GetUids()) == 0 {
		return nil
	}
	return u
}

var errRemoved = errors.New("not started: its pod was removed while it was made")

// Start makes a container, unless there is one, starts it and reads it: at most
// three calls. It returns the container as a fact also when it could be made
// but not started, or not read.
func (c *Containers) Start(ctx context.Context, st Start) (pod.Facts, error) {
	id := st.Existing
	if id == "" {
		var err error
		if id, err = c.create(ctx, &st); err != nil {
			return c.notCreated(&st, err)
		}
		c.event(st.State, st.Container.Name, v1.EventTypeNormal, "Created", "Container created")
	}
	if st.Removed != nil && st.Removed() {
		return seen(st.State, c.made(&st, id)), errRemoved
	}
	if err := c.Runtime.StartContainer(ctx, id); err != nil {
		return c.notStarted(ctx, &st, id, err)
	}
	c.event(st.State, st.Container.Name, v1.EventTypeNormal, "Started", "Container started")
	c.link(&st, id)
	ct, err := c.read(ctx, &st, id)
	if err != nil {
		ct.State = pod.Running
		err = crifact.Written(fmt.Errorf("reading the container just started: %w", err), true)
	}
	return seen(st.State, ct), pod.WithReason(reasonRun, retried(err))
}

func (c *Containers) create(ctx context.Context, st *Start) (id string, err error) {
	request, err := c.Request(st)
	if err != nil {
		return "", pod.WithReason(reasonConfig, err)
	}
	id, err = c.Runtime.CreateContainer(ctx, st.SandboxID, request, st.Sandbox)
	if err != nil {
		return "", pod.WithReason(reasonCreate, retried(crifact.Written(err, crifact.Uncertain(err))))
	}
	return id, nil
}

// notCreated tells why there is no container. A name that is taken is no
// failure that a user can do anything about: the next look finds the container.
func (c *Containers) notCreated(st *Start, err error) (pod.Facts, error) {
	if crifact.NameTaken(err) {
		return nil, err
	}
	c.event(st.State, st.Container.Name, v1.EventTypeWarning, "Failed", "Error: "+err.Error())
	if pod.ReasonOf(err) == reasonCreate && imageGone(err) {
		return pod.Facts{pod.ImageGone{Ref: st.Container.Image}}, err
	}
	return nil, err
}

// imageGone reports whether the runtime misses the image of a new container.
// The words are those of containerd and CRI-O, whose codes do not tell the
// image from the sandbox.
func imageGone(err error) bool {
	text := strings.ToLower(crifact.Message(err))
	if !strings.Contains(text, "image") {
		return false
	}
	return crifact.NotFound(err) || strings.Contains(text, "not known") || strings.Contains(text, "not found") ||
		strings.Contains(text, "no such image")
}

// notStarted learns what became of a container that did not start: most
// runtimes count it as one that exited, and know the reason.
func (c *Containers) notStarted(ctx context.Context, st *Start, id string, err error) (pod.Facts, error) {
	if crifact.NotFound(err) {
		return pod.Facts{pod.ContainerRemoved{ID: id}}, pod.WithReason(reasonRun, err)
	}
	c.event(st.State, st.Container.Name, v1.EventTypeWarning, "Failed", "Error: "+withoutID(err.Error(), id, st.Container.Name))
	ct, unread := c.read(ctx, st, id)
	// Having answered, the runtime is done with it; the answer may be missing.
	uncertain := crifact.Uncertain(err) && (unread != nil || ct.State == pod.Created)
	return seen(st.State, ct), pod.WithReason(reasonRun, retried(crifact.Written(err, uncertain)))
}

// withoutID puts the container's name in place of its ID, also where the ID is
// cut: equal events of several attempts are then counted as one.
func withoutID(text, id, name string) string {
	const shortest = 12
	for n := len(id); n >= min(shortest, len(id)); n-- {
		text = strings.ReplaceAll(text, id[:n], name)
	}
	return text
}

// read reads a container that this start made or found. With an error it
// returns what is known without: it was created.
func (c *Containers) read(ctx context.Context, st *Start, id string) (pod.Container, error) {
	status, err := c.Runtime.ContainerStatus(ctx, id)
	if err != nil {
		return c.made(st, id), err
	}
	ct := crifact.ContainerStatus(status)
	ct.SandboxID = st.SandboxID
	c.Finish(&ct, status)
	return ct, nil
}

// made is what is known of a container without the runtime's status.
func (c *Containers) made(st *Start, id string) pod.Container {
	return pod.Container{
		ID: id, Name: st.Container.Name, Attempt: st.Attempt, SandboxID: st.SandboxID, Hash: c.Hash(st.Container), CreatedAt: time.Now(),
	}
}
