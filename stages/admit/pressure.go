package admit

import (
	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/flowlet/flowlet/internal/pod"
)

// pressure keeps pods away from a node that evicts others. Critical pods come
// in whatever there is; under pressure of memory alone so do pods that request
// some, and those that tolerate it.
func (n *node) pressure(p *v1.Pod) *refusal {
	if n.Pressed == nil || pod.Critical(p) {
		return nil
	}
	var under []v1.NodeConditionType
	for _, c := range [...]v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
		if n.Pressed(c) {
			under = append(under, c)
		}
	}
	if len(under) == 0 || len(under) == 1 && under[0] == v1.NodeMemoryPressure && standsMemoryPressure(p) {
		return nil
	}
	return refused("Evicted", "The node had condition: %v. ", under)
}

func standsMemoryPressure(p *v1.Pod) bool {
	taint := v1.Taint{Key: v1.TaintNodeMemoryPressure, Effect: v1.TaintEffectNoSchedule}
	return qos.GetPodQOS(p) != v1.PodQOSBestEffort ||
		corev1.TolerationsTolerateTaint(logr.Discard(), p.Spec.Tolerations, &taint, false)
}
