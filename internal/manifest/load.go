package manifest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Static is a static pod that can run.
type Static struct {
	Pod      *v1.Pod   // defaulted, valid, identified; do not change it
	Name     string    // metadata.name as the user wrote it
	Revision string    // changes exactly when what the user wrote changes
	Warnings []Problem // odd, but it runs
}

// Load does all that turns a manifest into a static pod: decode, default,
// validate, identify. file is used in messages only; it usually equals
// o.Location. The error is an *Error that lists everything found wrong.
func Load(file string, data []byte, o Origin) (*Static, error) {
	m, err := Decode(file, data)
	if err != nil {
		return nil, err
	}
	pod := m.Pod.DeepCopy()
	Default(pod)
	errs := append(Validate(pod), ValidateStatic(pod)...)
	if len(errs) == 0 {
		errs = validateNodeSuffix(pod.Name, o.NodeName)
	}
	if len(errs) > 0 {
		return nil, &Error{Problems: m.problemsOf(errs)}
	}
	m.Identify(pod, o)
	if at, warning := priorityWarning(&pod.Spec); warning != "" {
		m.Warnings = append(m.Warnings, m.problemAt(at, warning))
	}
	for _, odd := range oddities(&m.Pod.Spec) {
		m.Warnings = append(m.Warnings, m.problemAt(odd.field, odd.field+odd.says))
	}
	return &Static{Pod: pod, Name: m.Pod.Name, Revision: m.Revision(), Warnings: m.Warnings}, nil
}

// validateNodeSuffix checks the name that the pod will have. The name alone
// is valid, so only the node's can break it.
func validateNodeSuffix(name, nodeName string) field.ErrorList {
	var errs field.ErrorList
	full := PodName(name, nodeName)
	for _, msg := range validation.IsDNS1123Subdomain(full) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name,
			fmt.Sprintf("with the node name after it, %q: %s", full, msg)))
	}
	return errs
}
