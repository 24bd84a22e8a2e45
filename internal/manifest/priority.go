package manifest

import v1 "k8s.io/api/core/v1"

// nodeCritical is the priority of the class system-node-critical.
const (
	nodeCritical      = 2000001000
	nodeCriticalClass = "system-node-critical"
)

// priorityWarning says what is odd about the priority of a static pod. The
// node takes it as it is; the API server may refuse, or try to evict, the
// mirror pod that goes with it. Empty when nothing is odd.
func priorityWarning(spec *v1.PodSpec) (field, warning string) {
	switch class := spec.PriorityClassName; {
	case spec.Priority == nil && class != "":
		return "spec.priorityClassName", "spec.priorityClassName has no effect on the node without spec.priority, and the mirror pod may be refused"
	case spec.Priority == nil:
		return "", ""
	case class == "":
		return "spec.priority", "spec.priority without spec.priorityClassName: the mirror pod may be refused"
	case *spec.Priority != nodeCritical || class != nodeCriticalClass:
		return "spec.priority", "only priority 2000001000 with class system-node-critical keeps the mirror pod from being evicted in vain"
	}
	return "", ""
}
