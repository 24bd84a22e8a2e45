package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubectl/pkg/util/fieldpath"
)

func (v *validator) env(vars []v1.EnvVar, at *field.Path) {
	for i, e := range vars {
		at := at.Index(i)
		if v.require(e.Name != "", at.Child("name"), "") {
			v.invalid(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name)...)
		}
		if e.ValueFrom != nil {
			v.envValueFrom(e, at.Child("valueFrom"))
		}
	}
}

func (v *validator) envValueFrom(e v1.EnvVar, at *field.Path) {
	from, sources := e.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		v.fieldRef(from.FieldRef, at.Child("fieldRef"), envFields())
	}
	if from.ResourceFieldRef != nil {
		sources++
		v.resourceFieldRef(from.ResourceFieldRef, at.Child("resourceFieldRef"))
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		v.keyRef(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, at.Child("configMapKeyRef"))
	}
	if from.SecretKeyRef != nil {
		sources++
		v.keyRef(from.SecretKeyRef.Name, from.SecretKeyRef.Key, at.Child("secretKeyRef"))
	}
	if from.FileKeyRef != nil {
		sources++
		v.fileKeyRef(from.FileKeyRef, at.Child("fileKeyRef"))
	}
	switch {
	case sources == 0:
		v.invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case e.Value != "":
		v.invalid(at, "", "may not be specified when `value` is not empty")
	case sources > 1:
		v.invalid(at, "", "may not have more than one field specified at a time")
	}
}

func (v *validator) envFrom(froms []v1.EnvFromSource, at *field.Path) {
	for i, from := range froms {
		at := at.Index(i)
		if from.Prefix != "" {
			v.invalid(at.Child("prefix"), from.Prefix, validation.IsRelaxedEnvVarName(from.Prefix)...)
		}
		if ref := from.ConfigMapRef; ref != nil {
			v.objectName(ref.Name, at.Child("configMapRef", "name"))
		}
		if ref := from.SecretRef; ref != nil {
			v.objectName(ref.Name, at.Child("secretRef", "name"))
		}
		switch {
		case from.ConfigMapRef == nil && from.SecretRef == nil:
			v.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			v.invalid(at, "", "may not have more than one field specified at a time")
		}
	}
}

// objectName checks the name of a config map or secret. The API lets it end in
// a dash here, as if it were the beginning of a generated name.
func (v *validator) objectName(name string, at *field.Path) {
	if v.require(name != "", at, "") {
		v.invalid(at, name, apivalidation.NameIsDNSSubdomain(name, true)...)
	}
}

func (v *validator) keyRef(name, key string, at *field.Path) {
	v.invalid(at.Child("name"), name, validation.IsDNS1123Subdomain(name)...)
	if v.require(key != "", at.Child("key"), "") {
		v.invalid(at.Child("key"), key, validation.IsConfigMapKey(key)...)
	}
}

// fileKeyRef reads a variable from a file in an emptyDir of the pod.
func (v *validator) fileKeyRef(ref *v1.FileKeySelector, at *field.Path) {
	if v.require(ref.Key != "", at.Child("key"), "") {
		v.invalid(at.Child("key"), ref.Key, validation.IsRelaxedEnvVarName(ref.Key)...)
	}
	v.label(at.Child("volumeName"), ref.VolumeName)
	if v.require(ref.Path != "", at.Child("path"), "") {
		v.noBacksteps(ref.Path, at.Child("path"))
	}
	i := slices.IndexFunc(v.spec.Volumes, func(vol v1.Volume) bool { return vol.Name == ref.VolumeName })
	switch {
	case i < 0:
		v.add(field.NotFound(at.Child("volumeName"), ref.VolumeName))
	case v.spec.Volumes[i].EmptyDir == nil:
		v.invalid(at.Child("volumeName"), ref.VolumeName, "referenced volume must be of type emptyDir")
	}
}

// envFields are the fields of its pod that a variable can show.
func envFields() []string {
	return []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
}

// volumeFields are the fields of its pod that a file can show.
func volumeFields() []string {
	return []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
}

func (v *validator) fieldRef(ref *v1.ObjectFieldSelector, at *field.Path, allowed []string) {
	if !v.require(ref.APIVersion != "", at.Child("apiVersion"), "") || !v.require(ref.FieldPath != "", at.Child("fieldPath"), "") {
		return
	}
	if ref.APIVersion != "v1" {
		v.invalid(at.Child("fieldPath"), ref.FieldPath, "unsupported pod version: "+ref.APIVersion)
		return
	}
	path, subscript, ok := fieldpath.SplitMaybeSubscriptedPath(ref.FieldPath)
	switch {
	case ok && path == "metadata.annotations":
		v.invalid(at, subscript, validation.IsQualifiedName(strings.ToLower(subscript))...)
	case ok && path == "metadata.labels":
		v.invalid(at, subscript, validation.IsQualifiedName(subscript)...)
	case ok:
		v.invalid(at.Child("fieldPath"), ref.FieldPath, "does not support subscript")
	case path == "spec.host" && slices.Contains(allowed, "spec.nodeName"): // its name of long ago
	case !slices.Contains(allowed, path):
		v.add(field.NotSupported(at.Child("fieldPath"), path, allowed))
	}
}

// resourceFieldRef shows a container's own requests and limits.
func (v *validator) resourceFieldRef(ref *v1.ResourceFieldSelector, at *field.Path) {
	allowed := []string{
		"limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory",
	}
	_, name, _ := strings.Cut(ref.Resource, ".")
	hugePages := strings.HasPrefix(ref.Resource, "limits.hugepages-") || strings.HasPrefix(ref.Resource, "requests.hugepages-")
	if v.require(ref.Resource != "", at.Child("resource"), "") && !hugePages && !slices.Contains(allowed, ref.Resource) {
		v.add(field.NotSupported(at.Child("resource"), ref.Resource, allowed))
		return
	}
	divisors := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if name == "cpu" {
		divisors = []string{"1m", "1"}
	}
	if ref.Divisor.Cmp(resource.Quantity{}) != 0 && ref.Resource != "" && !slices.Contains(divisors, ref.Divisor.String()) {
		v.invalid(at.Child("divisor"), ref.Divisor.String(), "must be one of "+strings.Join(divisors, ", "))
	}
}
