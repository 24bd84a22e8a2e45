package bench

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Namespace holds the pods of the bench and nothing else: what is left in it
// is removed.
const Namespace = "flowlet-bench"

// Source is the bench as a source of pods, in the annotation
// kubernetes.io/config.source.
const Source = "bench"

// Shape is what each pod of a batch looks like.
type Shape struct {
	Containers  int      `json:"containers"`
	Images      []string `json:"images"` // containers take them in turn
	Command     []string `json:"command,omitempty"`
	HostNetwork bool     `json:"hostNetwork"`
	Volumes     int      `json:"emptyDirVolumes"` // each mounted by every container
}

// String says the shape in a few words.
func (s Shape) String() string {
	out := count(s.Containers, "container")
	if n := len(s.Images); n > 1 {
		out += " of " + count(n, "image")
	}
	if s.Volumes > 0 {
		out += ", " + count(s.Volumes, "emptyDir volume")
	}
	if s.HostNetwork {
		return out + ", hostNetwork"
	}
	return out + ", pod network"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Make returns n new pods, each with a UID of its own.
func (s Shape) Make(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = s.pod(i)
	}
	return pods
}

func (s Shape) pod(i int) *v1.Pod {
	id := uuid.NewUUID()
	grace, link := int64(1), false
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%d-%s", i, id[:8]), Namespace: Namespace, UID: id,
			Annotations: map[string]string{"kubernetes.io/config.source": Source},
		},
		Spec: v1.PodSpec{
			HostNetwork: s.HostNetwork, RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSDefault,
			TerminationGracePeriodSeconds: &grace, EnableServiceLinks: &link, AutomountServiceAccountToken: &link,
			SecurityContext: &v1.PodSecurityContext{}, SchedulerName: "none",
		},
	}
	limit := resource.MustParse("1Mi")
	for v := range s.Volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{
			Name: "scratch-" + strconv.Itoa(v), VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}},
		})
	}
	for c := range s.Containers {
		p.Spec.Containers = append(p.Spec.Containers, s.container(c))
	}
	return p
}

func (s Shape) container(i int) v1.Container {
	c := v1.Container{
		Name: "app-" + strconv.Itoa(i), Image: s.Images[i%len(s.Images)], ImagePullPolicy: v1.PullIfNotPresent, Command: s.Command,
		TerminationMessagePath: v1.TerminationMessagePathDefault, TerminationMessagePolicy: v1.TerminationMessageReadFile,
	}
	for v := range s.Volumes {
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{
			Name: "scratch-" + strconv.Itoa(v), MountPath: "/scratch-" + strconv.Itoa(v),
		})
	}
	return c
}
