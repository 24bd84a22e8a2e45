package app

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/flowlet/flowlet/internal/pod"
)

// handler returns what the runtime handler of a pod can do, as the runtime
// told last. Without an API server there are no classes: every pod has the
// default handler.
func (a *Agent) handler(*v1.Pod) pod.HandlerFeatures {
	return a.Store.Runtime().Features.Handlers[""]
}

// mountsImages reports whether the runtime mounts images as volumes. It does not
// tell; the known ones do from a version on, and one that is not known is asked
// to.
func (a *Agent) mountsImages() bool { return mountsImages(a.Runtime.Name(), a.Runtime.Version()) }

func mountsImages(name, text string) bool {
	first, known := map[string]string{"containerd": "2.1", "cri-o": "1.31"}[name]
	v, err := version.ParseGeneric(text)
	return !known || err != nil || v.AtLeast(version.MustParseGeneric(first))
}

// strictGroups reports whether the runtime supports supplementalGroupsPolicy
// Strict, once it has told.
func (a *Agent) strictGroups() (yes, known bool) {
	f := a.Store.Runtime().Features
	return f.StrictGroups, f.Known
}

// roomy returns the pods that have room on the node, also while they end.
func (a *Agent) roomy() []*v1.Pod {
	var out []*v1.Pod
	for _, k := range a.Store.Keys() {
		s := a.state(k)
		if s != nil && s.Pod() != nil && s.Admission.OK && s.Phase != pod.Finished {
			out = append(out, s.Pod())
		}
	}
	return out
}
