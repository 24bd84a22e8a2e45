package container

import (
	"encoding/json"
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// annotationPreStop keeps the hook for an agent that knows the container only
// from the runtime; the others are named in package pod.
const annotationPreStop = "io.kubernetes.container.preStopHandler"

// Request returns what the runtime is asked for to make a container. It makes
// the termination log and writes the pod's hosts file on the way.
func (c *Containers) Request(st *Start) (*runtimeapi.ContainerConfig, error) {
	ct := st.Container
	env, err := c.environment(st)
	if err != nil {
		return nil, err
	}
	security, err := c.security(st)
	if err != nil {
		return nil, err
	}
	annotations, err := c.annotations(st)
	if err != nil {
		return nil, err
	}
	mounts, err := c.mounts(st, env)
	if err != nil {
		return nil, err
	}
	p := st.State.Pod()
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: ct.Name, Attempt: st.Attempt},
		Image:       &runtimeapi.ImageSpec{Image: st.Image.ID, UserSpecifiedImage: ct.Image},
		Command:     env.expandAll(ct.Command),
		Args:        env.expandAll(ct.Args),
		WorkingDir:  ct.WorkingDir,
		Envs:        env.list(),
		Mounts:      mounts,
		Labels:      labels(p, ct),
		Annotations: annotations,
		LogPath:     ct.Name + "/" + logName(st.Attempt),
		Stdin:       ct.Stdin,
		StdinOnce:   ct.StdinOnce,
		Tty:         ct.TTY,
		StopSignal:  c.stopSignal(ct),
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       c.resources(p, ct),
			SecurityContext: security,
		},
	}, nil
}

// stopSignal is what a stop begins with; the zero value leaves it to the image.
func (c *Containers) stopSignal(ct *v1.Container) runtimeapi.Signal {
	if !c.Settings.StopSignals || ct.Lifecycle == nil || ct.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	return crifact.Signal(*ct.Lifecycle.StopSignal)
}

func labels(p *v1.Pod, ct *v1.Container) map[string]string {
	return map[string]string{
		pod.LabelPodName:       p.Name,
		pod.LabelPodNamespace:  p.Namespace,
		pod.LabelPodUID:        string(p.UID),
		pod.LabelContainerName: ct.Name,
	}
}

// annotations are what an agent needs to know of a container without its spec.
func (c *Containers) annotations(st *Start) (map[string]string, error) {
	p, ct := st.State.Pod(), st.Container
	out := map[string]string{
		pod.AnnotationContainerHash: c.Hash(ct),
		pod.AnnotationRestartCount:  strconv.FormatUint(uint64(st.Attempt), 10),
		pod.AnnotationMessagePath:   ct.TerminationMessagePath,
		pod.AnnotationMessagePolicy: string(ct.TerminationMessagePolicy),
	}
	if g := p.DeletionGracePeriodSeconds; g != nil {
		out[pod.AnnotationPodDeletionGrace] = strconv.FormatInt(*g, 10)
	}
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		out[pod.AnnotationPodGrace] = strconv.FormatInt(*g, 10)
	}
	if l := ct.Lifecycle; l != nil && l.PreStop != nil {
		text, err := json.Marshal(l.PreStop)
		if err != nil {
			return nil, fmt.Errorf("lifecycle.preStop: %w", err)
		}
		out[annotationPreStop] = string(text)
	}
	if l := ct.Lifecycle; l != nil && l.PostStart != nil {
		out[pod.AnnotationPostStart] = "true"
	}
	if len(ct.Ports) > 0 {
		text, err := json.Marshal(ct.Ports)
		if err != nil {
			return nil, fmt.Errorf("ports: %w", err)
		}
		out[pod.AnnotationPorts] = string(text)
	}
	return out, nil
}

// logName is the name of the log file of one attempt.
func logName(attempt uint32) string { return strconv.FormatUint(uint64(attempt), 10) + ".log" }
