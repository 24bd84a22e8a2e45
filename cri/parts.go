package cri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A runtime without streaming lists refuses a list that is larger than one
// message may be. It is then asked for in parts. Each kind of part is asked for
// in the order in which objects move through their states, so that one which
// moves meanwhile is in one part at least.

// tooLarge reports whether an answer did not fit into a message.
func tooLarge(err error) bool { return status.Code(err) == codes.ResourceExhausted }

var sandboxStates = [...]runtimeapi.PodSandboxState{runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.PodSandboxState_SANDBOX_NOTREADY}

// sandboxParts lists sandboxes by state.
func (c *Client) sandboxParts(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
	all := parts[*runtimeapi.PodSandbox]{at: map[string]int{}}
	for _, state := range sandboxStates {
		list, err := c.unarySandboxes(ctx, &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: state}})
		if err != nil {
			return nil, err
		}
		all.add(list)
	}
	return all.items, nil
}

var containerStates = [...]runtimeapi.ContainerState{
	runtimeapi.ContainerState_CONTAINER_CREATED, runtimeapi.ContainerState_CONTAINER_RUNNING,
	runtimeapi.ContainerState_CONTAINER_UNKNOWN, runtimeapi.ContainerState_CONTAINER_EXITED,
}

// containerParts lists containers by state, and those of a state that are still
// too many by sandbox.
func (c *Client) containerParts(ctx context.Context) ([]*runtimeapi.Container, error) {
	all := parts[*runtimeapi.Container]{at: map[string]int{}}
	for _, state := range containerStates {
		filter := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: state}}
		list, err := c.unaryContainers(ctx, filter)
		if tooLarge(err) {
			list, err = c.containersBySandbox(ctx, filter.GetState())
		}
		if err != nil {
			return nil, err
		}
		all.add(list)
	}
	return all.items, nil
}

func (c *Client) containersBySandbox(ctx context.Context, state *runtimeapi.ContainerStateValue) ([]*runtimeapi.Container, error) {
	sandboxes, err := c.ListPodSandbox(ctx, nil)
	if err != nil {
		return nil, err
	}
	var out []*runtimeapi.Container
	for _, sb := range sandboxes {
		list, err := c.unaryContainers(ctx, &runtimeapi.ContainerFilter{PodSandboxId: sb.GetId(), State: state})
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// parts puts parts of a list together; of an object that is in several, the
// last one counts.
type parts[Item interface{ GetId() string }] struct {
	items []Item
	at    map[string]int
}

func (p *parts[Item]) add(list []Item) {
	for _, item := range list {
		if i, ok := p.at[item.GetId()]; ok {
			p.items[i] = item
			continue
		}
		p.at[item.GetId()] = len(p.items)
		p.items = append(p.items, item)
	}
}
