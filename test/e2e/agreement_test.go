//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// agree waits until what `flowlet get pods -o json` says of all pods is what crictl says of the runtime's objects, and
// those carry the names, labels and annotations that the kubelet would give them. Waiting is for pods that move on meanwhile.
func (a *agent) agree() {
	a.t.Helper()
	a.until("flowlet and crictl agree", func() error {
		out, code := a.run("get", "pods", "-o", "json")
		require.Zero(a.t, code, out)
		var list v1.PodList
		require.NoError(a.t, json.Unmarshal([]byte(out), &list))
		all, sandboxes := a.containers(), a.sandboxes()
		for i := range list.Items {
			p := &list.Items[i]
			if err := a.agreeOnSandbox(p, sandboxes); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
				if err := a.agreeOnContainer(p, s, containersOf(all, string(p.UID), s.Name)); err != nil {
					return fmt.Errorf("%s, %s: %w", p.Name, s.Name, err)
				}
			}
		}
		return nil
	})
}

func (a *agent) agreeOnSandbox(p *v1.Pod, all []sandbox) error {
	var got *sandbox
	for i := range all {
		if all[i].Metadata.UID == string(p.UID) {
			got = &all[i]
			break
		}
	}
	if got == nil {
		return fmt.Errorf("no sandbox has its UID")
	}
	var want sandbox
	want.ID, want.State = got.ID, "SANDBOX_NOTREADY"
	if p.Status.Phase == v1.PodRunning {
		want.State = sandboxReady
	}
	want.Metadata.Name, want.Metadata.Namespace, want.Metadata.UID = p.Name, p.Namespace, string(p.UID)
	// A kill may cut RunPodSandbox off and leave a sandbox that never was ready, which the next agent replaces.
	want.Metadata.Attempt = min(got.Metadata.Attempt, a.kills)
	want.Labels = identity(p)
	maps.Copy(want.Labels, p.Labels)
	want.Annotations = maps.Clone(p.Annotations)
	maps.DeleteFunc(want.Annotations, func(k, _ string) bool { return strings.HasPrefix(k, "flowlet.dev/") })
	const seen = "kubernetes.io/config.seen" // a new agent sees the manifest anew
	if _, err := time.Parse(time.RFC3339Nano, got.Annotations[seen]); err == nil {
		want.Annotations[seen] = got.Annotations[seen]
	}
	if d := cmp.Diff(want, *got); d != "" {
		return fmt.Errorf("sandbox: %s", d)
	}
	if ip, err := a.sandboxIP(got.ID); err != nil || p.Status.Phase == v1.PodRunning && ip != p.Status.PodIP {
		return fmt.Errorf("the sandbox has the address %q, the pod %q: %v", ip, p.Status.PodIP, err)
	}
	return nil
}

func identity(p *v1.Pod) map[string]string {
	return map[string]string{podLabel: p.Name, namespaceLabel: p.Namespace, uidLabel: string(p.UID)}
}

func (a *agent) agreeOnContainer(p *v1.Pod, s v1.ContainerStatus, all []container) error {
	if len(all) == 0 {
		return fmt.Errorf("the runtime has no such container")
	}
	got, err := a.inspect(all[0].ID)
	if err != nil {
		return err
	}
	spec := specOf(p, s.Name)
	want := inspected{
		ID: strings.TrimPrefix(s.ContainerID, "containerd://"), ImageRef: s.ImageID,
		LogPath: fmt.Sprintf("/var/log/pods/%s_%s_%s/%s/%d.log", p.Namespace, p.Name, p.UID, s.Name, s.RestartCount),
		Labels:  identity(p), Annotations: annotations(p, spec, s.RestartCount, got.Annotations),
	}
	want.Labels[containerLabel] = s.Name
	want.Metadata.Name, want.Metadata.Attempt = s.Name, s.RestartCount
	want.Image.Image = s.Image
	switch ended := ended(s); {
	case s.State.Running != nil:
		want.State, want.StartedAt = containerRunning, s.State.Running.StartedAt.Time
	case ended != nil:
		want.State, want.ExitCode, want.Reason = containerExited, ended.ExitCode, ended.Reason
		want.StartedAt, want.FinishedAt = ended.StartedAt.Time, ended.FinishedAt.Time
		if ended.ContainerID != s.ContainerID {
			return fmt.Errorf("the last state is of %s, the status of %s", ended.ContainerID, s.ContainerID)
		}
	}
	// Kubernetes has whole seconds.
	got.StartedAt, got.FinishedAt = got.StartedAt.Truncate(1e9), got.FinishedAt.Truncate(1e9)
	ignore := []cmp.Option{cmpopts.IgnoreFields(inspected{}, "Message")} // the container's own words are added to it
	if want.FinishedAt.IsZero() {
		ignore = append(ignore, cmpopts.IgnoreFields(inspected{}, "FinishedAt"))
	}
	if d := cmp.Diff(want, got, ignore...); d != "" {
		return fmt.Errorf("container: %s", d)
	}
	return nil
}

// ended is the end of a container's newest run, nil when it runs or never ran.
func ended(s v1.ContainerStatus) *v1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// annotations are those that a container gets. What cannot be told from the pod has to be there in the right form.
func annotations(p *v1.Pod, spec *v1.Container, restarts int32, got map[string]string) map[string]string {
	const prefix = "io.kubernetes.container."
	want := map[string]string{
		prefix + "hash":                            got[prefix+"hash"],
		prefix + "restartCount":                    strconv.Itoa(int(restarts)),
		prefix + "terminationMessagePath":          spec.TerminationMessagePath,
		prefix + "terminationMessagePolicy":        string(spec.TerminationMessagePolicy),
		"io.kubernetes.pod.terminationGracePeriod": strconv.Itoa(int(*p.Spec.TerminationGracePeriodSeconds)),
	}
	if _, err := strconv.ParseUint(want[prefix+"hash"], 16, 32); err != nil {
		want[prefix+"hash"] = "a hexadecimal number"
	}
	if len(spec.Ports) > 0 {
		b, _ := json.Marshal(spec.Ports)
		want[prefix+"ports"] = string(b)
	}
	return want
}

// specOf is a container of a pod, of either kind.
func specOf(p *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
