package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// placement checks what a node looks at when it admits a pod. Affinities
// between pods, topology spread and preemption are the scheduler's business
// and do nothing for a pod that already has its node.
func (v *validator) placement(at *field.Path) {
	for i, t := range v.spec.Tolerations {
		v.toleration(t, at.Child("tolerations").Index(i))
	}
	for i, gate := range v.spec.ReadinessGates {
		at := at.Child("readinessGates").Index(i).Child("conditionType")
		v.invalid(at, gate.ConditionType, validation.IsQualifiedName(string(gate.ConditionType))...)
	}
	v.forbid(len(v.spec.SchedulingGates) > 0, at.Child("schedulingGates"), "a pod that has its node may not wait for gates")
	oneOfSet(v, at.Child("preemptionPolicy"), v.spec.PreemptionPolicy, v1.PreemptLowerPriority, v1.PreemptNever)
	if affinity := v.spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		v.requiredNodes(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			at.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"))
	}
}

func (v *validator) toleration(t v1.Toleration, at *field.Path) {
	if t.Key != "" {
		v.add(metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
	} else if t.Operator != v1.TolerationOpExists {
		v.invalid(at.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	if t.TolerationSeconds != nil && t.Effect != v1.TaintEffectNoExecute {
		v.invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
	switch t.Operator {
	case "", v1.TolerationOpEqual:
		if msgs := validation.IsValidLabelValue(t.Value); len(msgs) > 0 {
			v.invalid(at.Child("operator"), t.Value, strings.Join(msgs, ";"))
		}
	case v1.TolerationOpExists:
		if t.Value != "" {
			v.invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'")
		}
	default:
		v.add(field.NotSupported(at.Child("operator"), t.Operator, []v1.TolerationOperator{v1.TolerationOpEqual, v1.TolerationOpExists}))
	}
	effects := []v1.TaintEffect{"", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		v.add(field.NotSupported(at.Child("effect"), t.Effect, effects[1:]))
	}
}

// requiredNodes: no term matches no node, which is never meant.
func (v *validator) requiredNodes(selector *v1.NodeSelector, at *field.Path) {
	if selector != nil {
		v.require(len(selector.NodeSelectorTerms) > 0, at.Child("nodeSelectorTerms"), "must have at least one node selector term")
	}
}

// operatingSystem refuses what this node, which runs Linux, cannot be asked.
// A pod for Windows is well-formed, and is rejected when it is admitted.
func (v *validator) operatingSystem(at *field.Path) {
	if v.spec.OS == nil {
		return
	}
	oneOf(v, at.Child("os", "name"), v.spec.OS.Name, v1.Linux, v1.Windows)
	if v.spec.OS.Name != v1.Linux {
		return
	}
	if sc := v.spec.SecurityContext; sc != nil {
		v.forbid(sc.WindowsOptions != nil, at.Child("securityContext", "windowsOptions"), "windows options cannot be set for a linux pod")
	}
	for i := range v.spec.Containers {
		if sc := v.spec.Containers[i].SecurityContext; sc != nil {
			v.forbid(sc.WindowsOptions != nil, at.Child("containers").Index(i).Child("securityContext", "windowsOptions"), "windows options cannot be set for a linux pod")
		}
	}
}
