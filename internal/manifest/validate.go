package manifest

import (
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate checks a defaulted pod as the API server checks a new one, in all
// that can hurt a node. Pods that it refuses are refused by a kubelet too,
// with few exceptions, which are stricter on purpose: metadata.uid becomes a
// directory and has to be fit for it. What only the scheduler reads is
// checked lightly. The namespace may be empty and means the default one. The
// errors come in the order of their fields.
func Validate(pod *v1.Pod) field.ErrorList {
	v := &validator{pod: pod, spec: &pod.Spec}
	v.metadata(field.NewPath("metadata"))
	v.podSpec(field.NewPath("spec"))
	slices.SortStableFunc(v.errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return v.errs
}

// validator walks one pod and collects what is wrong with it.
type validator struct {
	pod  *v1.Pod
	spec *v1.PodSpec
	errs field.ErrorList

	volumes map[string]*v1.Volume // those that are valid themselves
}

func (v *validator) add(errs ...*field.Error) { v.errs = append(v.errs, errs...) }

// require reports that a value is missing, and whether it is there.
func (v *validator) require(present bool, at *field.Path, detail string) bool {
	if !present {
		v.add(field.Required(at, detail))
	}
	return present
}

// invalid reports one error for every message.
func (v *validator) invalid(at *field.Path, value any, msgs ...string) {
	for _, msg := range msgs {
		v.add(field.Invalid(at, value, msg))
	}
}

// forbid reports a value that must not be there.
func (v *validator) forbid(present bool, at *field.Path, detail string) {
	if present {
		v.add(field.Forbidden(at, detail))
	}
}

// oneOf checks an enumeration; an empty value is missing.
func oneOf[T ~string](v *validator, at *field.Path, value T, allowed ...T) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	if value == "" {
		v.add(field.Required(at, ""))
		return
	}
	v.add(field.NotSupported(at, value, allowed))
}

// notNegative checks a number that may be zero.
func (v *validator) notNegative(at *field.Path, value int64) {
	v.add(apivalidation.ValidateNonnegativeField(value, at)...)
}

// label checks a name that has to be a DNS label and may not be empty.
func (v *validator) label(at *field.Path, value string) {
	if v.require(value != "", at, "") {
		v.invalid(at, value, validation.IsDNS1123Label(value)...)
	}
}

func (v *validator) metadata(at *field.Path) {
	meta := v.pod.ObjectMeta.DeepCopy()
	setIfEmpty(&meta.Namespace, metav1.NamespaceDefault)
	v.add(apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, at)...)
	if meta.UID != "" {
		uid := string(meta.UID)
		v.invalid(at.Child("uid"), uid, content.IsPathSegmentName(uid)...)
		if len(uid) > validation.DNS1123SubdomainMaxLength {
			v.add(field.TooLong(at.Child("uid"), uid, validation.DNS1123SubdomainMaxLength))
		}
	}
	v.profileAnnotations(at.Child("annotations"))
}

func (v *validator) podSpec(at *field.Path) {
	s := v.spec
	v.volumeList(at.Child("volumes"))
	v.containers(at)
	v.podResources(at.Child("resources"))
	v.overhead(at.Child("overhead"))
	oneOf(v, at.Child("restartPolicy"), s.RestartPolicy, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)
	v.podNumbers(at)
	v.podNames(at)
	v.dns(at)
	v.podSecurity(at)
	v.namespaces(at)
	v.placement(at)
	v.operatingSystem(at)
	v.forbid(len(s.EphemeralContainers) > 0, at.Child("ephemeralContainers"), "cannot be set on create")
}

func (v *validator) podNumbers(at *field.Path) {
	if v.require(v.spec.TerminationGracePeriodSeconds != nil, at.Child("terminationGracePeriodSeconds"), "") {
		v.notNegative(at.Child("terminationGracePeriodSeconds"), *v.spec.TerminationGracePeriodSeconds)
	}
	if d := v.spec.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		v.invalid(at.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32))
	}
}

// podNames checks the names of other objects that the spec holds.
func (v *validator) podNames(at *field.Path) {
	s := v.spec
	subdomains := []struct{ child, value string }{
		{"serviceAccountName", s.ServiceAccountName},
		{"priorityClassName", s.PriorityClassName},
	}
	for _, name := range subdomains {
		if name.value != "" {
			v.invalid(at.Child(name.child), name.value, validation.IsDNS1123Subdomain(name.value)...)
		}
	}
	if s.RuntimeClassName != nil {
		v.invalid(at.Child("runtimeClassName"), *s.RuntimeClassName, validation.IsDNS1123Subdomain(*s.RuntimeClassName)...)
	}
	v.add(metavalidation.ValidateLabels(s.NodeSelector, at.Child("nodeSelector"))...)
}
