package scenarios_test

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/cri/crisim"
)

// part is something that a manifest says.
type part func(p *v1.Pod)

// manifest writes a pod; without a container it has one, "web", of app:1.
func manifest(name string, parts ...part) string {
	p := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, add := range parts {
		add(p)
	}
	if len(p.Spec.Containers) == 0 {
		container("web", "app:1")(p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func container(name, image string, more ...func(c *v1.Container)) part {
	return func(p *v1.Pod) {
		c := v1.Container{Name: name, Image: image, ImagePullPolicy: v1.PullIfNotPresent}
		for _, m := range more {
			m(&c)
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
}

func initContainer(name string, more ...func(c *v1.Container)) part {
	return func(p *v1.Pod) {
		c := v1.Container{Name: name, Image: "app:1", ImagePullPolicy: v1.PullIfNotPresent}
		for _, m := range more {
			m(&c)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}

func sidecar(name string) part {
	return initContainer(name, func(c *v1.Container) {
		always := v1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	})
}

func pullPolicy(policy v1.PullPolicy) func(c *v1.Container) {
	return func(c *v1.Container) { c.ImagePullPolicy = policy }
}

func args(a ...string) func(c *v1.Container) { return func(c *v1.Container) { c.Args = a } }

func mount(volume string) func(c *v1.Container) {
	return func(c *v1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: volume, MountPath: "/" + volume})
	}
}

func emptyDir(name string) part {
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	}
}

// does says what the containers of the pod do; see docs/sim.md.
func does(script string) part {
	return func(p *v1.Pod) { p.Annotations = map[string]string{crisim.Annotation: script} }
}

func uid(u string) part { return func(p *v1.Pod) { p.UID = types.UID(u) } }

func grace(seconds int64) part {
	return func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func restart(policy v1.RestartPolicy) part {
	return func(p *v1.Pod) { p.Spec.RestartPolicy = policy }
}

func hostNetwork(p *v1.Pod) { p.Spec.HostNetwork = true }
