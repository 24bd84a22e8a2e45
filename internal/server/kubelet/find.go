package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

// logFile is the log of one container.
type logFile struct {
	key       pod.Key
	container string
	id        string // empty: of one that the runtime had not told of yet
	path      string
}

// hasContainer reports whether the pod has, or had, a container of that name.
func hasContainer(v podstore.View, name string) bool {
	if _, ok := v.State.Newest(name); ok {
		return true
	}
	p := v.State.Pod()
	if p == nil {
		return false
	}
	is := func(c v1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(p.Spec.InitContainers, is) || slices.ContainsFunc(p.Spec.Containers, is) ||
		slices.ContainsFunc(p.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}

// find returns the log of the container that runs, or ran last, or with
// previous of the one before; or says why there is none.
func (a *API) find(v podstore.View, name string, previous bool) (logFile, error) {
	if len(v.State.Containers) == 0 { // nothing was heard of the runtime yet, or there never was a container
		if path, ok := a.newestFile(v, name, previous); ok {
			return logFile{key: v.Key, container: name, path: path}, nil
		}
	}
	id, err := idOf(v, name, previous)
	if err != nil {
		return logFile{}, err
	}
	c, ok := byID(v.State, id)
	path := c.LogPath
	if p := v.State.Pod(); ok && path == "" && p != nil {
		path = filepath.Join(a.LogDir(p), name, fmt.Sprintf("%d.log", c.Attempt))
	}
	if path == "" {
		return logFile{}, fmt.Errorf("unable to retrieve container logs for %s", id)
	}
	return logFile{key: v.Key, container: name, id: id, path: path}, nil
}

// idOf decides by the container's status, as the kubelet does.
func idOf(v podstore.View, name string, previous bool) (string, error) {
	in := fmt.Sprintf("container %q in pod %q", name, v.State.Identity.Name)
	st, ok := statusOf(v, name)
	if !ok {
		return "", fmt.Errorf("%s is not available", in)
	}
	last := ""
	if t := st.LastTerminationState.Terminated; t != nil {
		last = bare(t.ContainerID)
	}
	switch state := st.State; {
	case previous && last == "":
		return "", fmt.Errorf("previous terminated %s not found", in)
	case previous:
		return last, nil
	case state.Running != nil:
		return bare(st.ContainerID), nil
	case state.Terminated != nil && state.Terminated.ContainerID != "":
		return bare(state.Terminated.ContainerID), nil
	case last != "":
		return last, nil
	case state.Terminated != nil || st.LastTerminationState.Terminated != nil:
		return "", fmt.Errorf("%s is terminated", in)
	case state.Waiting == nil:
		return "", fmt.Errorf("%s is waiting to start - no logs yet", in)
	default:
		return "", fmt.Errorf("%s is waiting to start: %s", in, waiting(state.Waiting.Reason))
	}
}

func waiting(reason string) string {
	switch reason {
	case "ErrImagePull":
		return "image can't be pulled"
	case "ImagePullBackOff":
		return "trying and failing to pull image"
	}
	return reason
}

// statusOf is the container's status: as published, or for a pod without a
// spec what the runtime shows.
func statusOf(v podstore.View, name string) (v1.ContainerStatus, bool) {
	if v.Status != nil {
		for _, list := range [][]v1.ContainerStatus{v.Status.ContainerStatuses, v.Status.InitContainerStatuses, v.Status.EphemeralContainerStatuses} {
			for _, st := range list {
				if st.Name == name {
					return st, true
				}
			}
		}
		return v1.ContainerStatus{}, false
	}
	c, ok := v.State.Newest(name)
	st := v1.ContainerStatus{Name: name, ContainerID: c.ID}
	if c.State == pod.Exited {
		st.State.Terminated = &v1.ContainerStateTerminated{ContainerID: c.ID}
	} else {
		st.State.Running = &v1.ContainerStateRunning{}
	}
	if before, ok := v.State.Previous(name); ok {
		st.LastTerminationState.Terminated = &v1.ContainerStateTerminated{ContainerID: before.ID}
	}
	return st, ok
}

// bare is a container ID without the runtime's name.
func bare(id string) string {
	if _, after, ok := strings.Cut(id, "://"); ok {
		return after
	}
	return id
}

func byID(s *pod.State, id string) (pod.Container, bool) {
	for _, c := range s.Containers {
		if c.ID == id {
			return c, true
		}
	}
	return pod.Container{}, false
}

// newestFile is the log of the highest attempt, or the one before it, by what
// lies in the pod's log directory.
func (a *API) newestFile(v podstore.View, name string, previous bool) (string, bool) {
	p := v.State.Pod()
	if p == nil {
		return "", false
	}
	dir := filepath.Join(a.LogDir(p), name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", false
	}
	var attempts []int
	for _, e := range entries {
		if n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".log")); err == nil && strings.HasSuffix(e.Name(), ".log") {
			attempts = append(attempts, n)
		}
	}
	slices.Sort(attempts)
	back := 1
	if previous {
		back = 2
	}
	if len(attempts) < back {
		return "", false
	}
	return filepath.Join(dir, fmt.Sprintf("%d.log", attempts[len(attempts)-back])), true
}
