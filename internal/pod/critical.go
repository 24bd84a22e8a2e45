package pod

import v1 "k8s.io/api/core/v1"

// criticalPriority is the least priority of the system's own classes.
const criticalPriority = 2_000_000_000

// Critical reports whether the node is not itself without p: a static pod, or
// one of the system's own priority classes (as in kubelet v1.37.2).
func Critical(p *v1.Pod) bool {
	if source, ok := p.Annotations[AnnotationSource]; ok && source != SourceAPI {
		return true
	}
	return SystemCritical(p)
}

// SystemCritical reports whether p has one of the system's own priority
// classes. A static pod without one is critical for others, and is itself
// held to its limits.
func SystemCritical(p *v1.Pod) bool {
	return p.Spec.Priority != nil && *p.Spec.Priority >= criticalPriority
}
