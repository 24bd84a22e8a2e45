package status

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kinds of stages whose moves are told as events and that the status is not
// made from.
const (
	kindVolume  = "volume"
	kindCgroup  = "cgroup"
	kindDirs    = "dirs"
	kindStop    = "stop"
	kindTake    = "sandbox.stop"
	kindUnmount = "volume.unmount"
)

// Look is a pod at one step.
type Look struct {
	State *pod.State
	Memo  dag.Memo
}

// Tell makes events of what became of a pod between two steps, where the work
// of the stages has not told it itself. was may be the zero Look.
func Tell(r pod.Recorder, was, now Look) {
	p := now.State.Pod()
	if p == nil {
		return
	}
	t := teller{r: r, p: p, s: now.State}
	if a := now.State.Admission; a.Done && !a.OK && (was.State == nil || !was.State.Admission.Done) {
		t.warn("", a.Reason, a.Message)
	}
	t.judged(was.State)
	t.resized(was.State)
	for id, e := range now.Memo {
		if before := was.Memo[id]; e.State != before.State || e.Attempt != before.Attempt || !e.Until.Equal(before.Until) {
			t.moved(id, before, e)
		}
	}
}

// judged tells why the node ends the pod; not again after a restart of the agent.
func (t teller) judged(was *pod.State) {
	v := t.s.Verdict
	if v == nil || was == nil || was.Verdict != nil {
		return
	}
	kind := v1.EventTypeWarning
	if v.Reason == pod.ReasonDeadlineExceeded {
		kind = v1.EventTypeNormal
	}
	t.r.Event(t.p, "", kind, v.Reason, v.Message)
}

// resized tells when a resize begins and ends; not again after a restart of the agent.
func (t teller) resized(was *pod.State) {
	if was == nil || was.Phase != pod.Active || t.s.Phase != pod.Active {
		return
	}
	switch is, before := t.s.Resize, was.Resize; {
	case is != nil && is.Pod && (before == nil || !before.At.Equal(is.At)):
		t.r.Event(t.p, "", v1.EventTypeNormal, "ResizeStarted", "Pod resize started: "+summary(t.p, ""))
	case is == nil && before != nil:
		t.r.Event(t.p, "", v1.EventTypeNormal, "ResizeCompleted", "Pod resize completed: "+summary(t.p, ""))
	}
}

// summary says in JSON what the containers of a pod ask for, as the kubelet does.
func summary(p *v1.Pod, failed string) string {
	type container struct {
		Name      string                  `json:"name"`
		Resources v1.ResourceRequirements `json:"resources"`
	}
	list := func(containers []v1.Container) []container {
		var out []container
		for i := range containers {
			out = append(out, container{containers[i].Name, containers[i].Resources})
		}
		return out
	}
	text, err := json.Marshal(struct {
		Init       []container `json:"initContainers,omitempty"`
		Containers []container `json:"containers,omitempty"`
		Generation int64       `json:"generation"`
		Error      string      `json:"error,omitempty"`
	}{list(p.Spec.InitContainers), list(p.Spec.Containers), p.Generation, failed})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

type teller struct {
	r pod.Recorder
	p *v1.Pod
	s *pod.State
}

func (t teller) warn(path, reason, message string) {
	t.r.Event(t.p, path, v1.EventTypeWarning, reason, message)
}

// moved tells of one stage. The words are those of kubelet v1.37.2.
func (t teller) moved(id dag.ID, before, e dag.Entry) {
	switch {
	case e.State == dag.Failed && before.State != dag.Failed:
		t.failed(id, e)
	case e.State == dag.Held && before.State != dag.Held:
		t.held(id, e)
	case id.Kind == KindSandbox && e.State == dag.Running && before.State != dag.Running && len(t.s.Sandboxes) > 0:
		t.r.Event(t.p, "", v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
}

func (t teller) held(id dag.ID, e dag.Entry) {
	switch {
	case strings.HasPrefix(e.Why, CrashLoop):
		t.warn(crifact.FieldPath(t.p, id.Of), "BackOff",
			fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", id.Of, t.p.Name, t.p.Namespace, t.p.UID))
	case id.Kind == KindResize && t.s.Spec.Asked != nil:
		reason, message, _ := strings.Cut(e.Why, ": ")
		t.warn("", "Resize"+reason, "Pod resize "+reason+": "+summary(t.s.Spec.Asked, message))
	case id.Kind == KindSandbox && strings.HasPrefix(e.Why, "network is not ready"):
		t.warn("", "NetworkNotReady", e.Why)
	}
}

func (t teller) failed(id dag.ID, e dag.Entry) {
	switch id.Kind {
	case KindImage:
		t.r.Event(t.p, crifact.FieldPathOfImage(t.p, id.Of), v1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", id.Of))
	case KindResize:
		t.warn("", "ResizeError", "Pod resize error: "+summary(t.p, e.Err.Error()))
	case kindVolume:
		t.warn("", "FailedMount", fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", id.Of, e.Err))
	case kindCgroup:
		t.warn("", "FailedCreatePodContainer", fmt.Sprintf("unable to ensure pod container exists: %v", e.Err))
	case kindDirs:
		t.warn("", "Failed", fmt.Sprintf("error making pod data directories: %v", e.Err))
	case kindStop, kindTake:
		t.warn("", "FailedKillPod", fmt.Sprintf("error killing pod: %v", e.Err))
	case kindUnmount:
		t.warn("", "FailedUnMount", fmt.Sprintf("UnmountVolume.TearDown failed: %v", e.Err))
	}
}
