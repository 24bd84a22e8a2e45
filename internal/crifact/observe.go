package crifact

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Identity returns whose a sandbox or container is. Only sandboxes carry the
// pod's annotations, so the source of a container is unknown.
func Identity(labels, annotations map[string]string) pod.Identity {
	return pod.Identity{
		Name:      labels[pod.LabelPodName],
		Namespace: labels[pod.LabelPodNamespace],
		UID:       types.UID(labels[pod.LabelPodUID]),
		Source:    annotations[pod.AnnotationSource],
	}
}

// Sandbox returns what a row of a list says about a sandbox.
func Sandbox(sb *runtimeapi.PodSandbox) pod.Sandbox {
	return pod.Sandbox{
		ID:        sb.GetId(),
		Attempt:   sb.GetMetadata().GetAttempt(),
		CreatedAt: when(sb.GetCreatedAt()),
		Ready:     sb.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
	}
}

// SandboxStatus returns all that the runtime tells about a sandbox.
func SandboxStatus(st *runtimeapi.PodSandboxStatus) pod.Sandbox {
	return pod.Sandbox{
		ID:          st.GetId(),
		Attempt:     st.GetMetadata().GetAttempt(),
		CreatedAt:   when(st.GetCreatedAt()),
		Ready:       st.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		HostNetwork: st.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE,
		IPs:         addresses(st.GetNetwork()),
		Detailed:    true,
	}
}

func addresses(n *runtimeapi.PodSandboxNetworkStatus) []string {
	var ips []string
	if n.GetIp() != "" {
		ips = append(ips, n.GetIp())
	}
	for _, a := range n.GetAdditionalIps() {
		if a.GetIp() != "" {
			ips = append(ips, a.GetIp())
		}
	}
	return ips
}

// Container returns what a row of a list says about a container.
func Container(c *runtimeapi.Container) pod.Container {
	out := described(c.GetLabels(), c.GetAnnotations(), c.GetMetadata())
	out.ID = c.GetId()
	out.SandboxID = c.GetPodSandboxId()
	out.Image = c.GetImage().GetImage()
	out.ImageRef = c.GetImageRef()
	out.ImageID = c.GetImageId()
	out.CreatedAt = when(c.GetCreatedAt())
	out.State, out.Unknown = state(c.GetState())
	return out
}

// ContainerStatus returns all that the runtime tells about a container, but
// for its sandbox, which a status does not name: the caller sets SandboxID
// where it knows it.
func ContainerStatus(st *runtimeapi.ContainerStatus) pod.Container {
	out := described(st.GetLabels(), st.GetAnnotations(), st.GetMetadata())
	out.ID = st.GetId()
	out.Image = st.GetImage().GetImage()
	out.ImageRef = st.GetImageRef()
	out.ImageID = st.GetImageId()
	out.CreatedAt = when(st.GetCreatedAt())
	out.StartedAt = when(st.GetStartedAt())
	out.LogPath = st.GetLogPath()
	out.State, out.Unknown = state(st.GetState())
	out.Detailed = true
	out.Told = told(st)
	if out.State == pod.Exited {
		out.Exit = pod.Exit{
			Code: st.GetExitCode(), Reason: st.GetReason(), Message: st.GetMessage(), FinishedAt: when(st.GetFinishedAt()),
		}
	}
	return out
}

func described(labels, annotations map[string]string, m *runtimeapi.ContainerMetadata) pod.Container {
	name := labels[pod.LabelContainerName]
	if name == "" {
		name = m.GetName()
	}
	grace, _ := strconv.ParseInt(annotations[pod.AnnotationPodGrace], 10, 64) // absent or damaged: unknown, which is 0
	return pod.Container{
		Name:    name,
		Attempt: m.GetAttempt(),
		Hash:    annotations[pod.AnnotationContainerHash],
		Grace:   time.Duration(max(grace, 0)) * time.Second,
		Hooked:  annotations[pod.AnnotationPostStart] != "",
	}
}

// state maps the runtime's states. A container that the runtime does not know
// the state of may have a process, so it counts as one that runs.
func state(s runtimeapi.ContainerState) (_ pod.ContainerState, unknown bool) {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return pod.Created, false
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return pod.Exited, false
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return pod.Running, false
	default:
		return pod.Running, true
	}
}

// when returns the time of a field in nanoseconds; 0 and less mean never.
func when(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// told returns what a status says beside the container's life; nil for nothing.
func told(st *runtimeapi.ContainerStatus) *pod.Told {
	r := st.GetResources().GetLinux()
	t := pod.Told{MemoryLimit: max(r.GetMemoryLimitInBytes(), 0), StopSignal: SignalName(st.GetStopSignal())}
	if shares := r.GetCpuShares(); shares > 0 {
		t.CPURequest = MilliOfShares(shares)
	}
	if period := r.GetCpuPeriod(); period > 0 && r.GetCpuQuota() > 0 {
		t.CPULimit = r.GetCpuQuota() * milliCPU / period
	}
	if u := st.GetUser().GetLinux(); u != nil {
		t.User = &v1.LinuxContainerUser{UID: u.GetUid(), GID: u.GetGid(), SupplementalGroups: u.GetSupplementalGroups()}
	}
	if t == (pod.Told{}) {
		return nil
	}
	return &t
}
