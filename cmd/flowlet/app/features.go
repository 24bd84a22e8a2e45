package app

import (
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// handler returns what the runtime handler of a pod can do, as the runtime
// told last. Without an API server there are no classes: every pod has the
// default handler.
func (a *Agent) handler(*v1.Pod) pod.HandlerFeatures {
	return a.Store.Runtime().Features.Handlers[""]
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
