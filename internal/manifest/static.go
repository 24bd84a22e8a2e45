package manifest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateStatic refuses what a static pod cannot have because it lives in
// the API server: such a pod has to run when there is none.
func ValidateStatic(pod *v1.Pod) field.ErrorList {
	s := &statics{}
	spec, at := &pod.Spec, field.NewPath("spec")
	if spec.ServiceAccountName != "" {
		s.ban(at.Child("serviceAccountName"), "serviceaccounts")
	}
	for i, secret := range spec.ImagePullSecrets {
		if secret.Name != "" {
			s.ban(at.Child("imagePullSecrets").Index(i), "secrets")
		}
	}
	if len(spec.ResourceClaims) > 0 {
		s.ban(at.Child("resourceClaims"), "resourceclaims")
	}
	for i := range spec.InitContainers {
		s.container(&spec.InitContainers[i], at.Child("initContainers").Index(i))
	}
	for i := range spec.Containers {
		s.container(&spec.Containers[i], at.Child("containers").Index(i))
	}
	for i := range spec.Volumes {
		s.volume(&spec.Volumes[i], at.Child("volumes").Index(i))
	}
	return s.errs
}

// statics collects the references of one pod.
type statics struct{ errs field.ErrorList }

func (s *statics) ban(at *field.Path, kind string) {
	s.errs = append(s.errs, field.Forbidden(at, fmt.Sprintf("static pods may not reference %s", kind)))
}

func (s *statics) container(c *v1.Container, at *field.Path) {
	for i, e := range c.Env {
		at := at.Child("env").Index(i).Child("valueFrom")
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			s.ban(at.Child("secretKeyRef"), "secrets")
		}
		if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
			s.ban(at.Child("configMapKeyRef"), "configmaps")
		}
	}
	for i, from := range c.EnvFrom {
		at := at.Child("envFrom").Index(i)
		if from.SecretRef != nil {
			s.ban(at.Child("secretRef"), "secrets")
		}
		if from.ConfigMapRef != nil {
			s.ban(at.Child("configMapRef"), "configmaps")
		}
	}
}

// bannedVolumes are the volume types that need an object of the API server,
// and what they need.
func bannedVolumes() map[string]string {
	return map[string]string{
		"configMap":             "configmaps (via configmap volumes)",
		"secret":                "secrets (via secret volumes)",
		"csi":                   "csidrivers (via CSI volumes)",
		"glusterfs":             "endpoints (via glusterFS volumes)",
		"persistentVolumeClaim": "persistentvolumeclaims",
		"ephemeral":             "persistentvolumeclaims (via ephemeral volumes)",
		"azureFile":             "secrets (via azureFile volumes)",
	}
}

func (s *statics) volume(v *v1.Volume, at *field.Path) {
	for _, kind := range volumeKinds(v) {
		if needs, banned := bannedVolumes()[kind.name]; banned && kind.set {
			s.ban(at.Child(kind.name), needs)
		}
	}
	if secret := volumeSecret(v); secret != "" {
		s.ban(at, "secrets (via "+secret+" volumes)")
	}
	if v.Projected == nil {
		return
	}
	for i, source := range v.Projected.Sources {
		at := at.Child("projected", "sources").Index(i)
		if source == (v1.VolumeProjection{}) {
			s.errs = append(s.errs, field.Required(at, "must specify a source"))
		}
		for _, ref := range []struct {
			set          bool
			child, needs string
		}{
			{source.ConfigMap != nil, "configMap", "configmaps (via projected volumes)"},
			{source.Secret != nil, "secret", "secrets (via projected volumes)"},
			{source.ServiceAccountToken != nil, "serviceAccountToken", "serviceaccounts (via projected volumes)"},
			{source.ClusterTrustBundle != nil, "clusterTrustBundle", "clustertrustbundles"},
			{source.PodCertificate != nil, "podCertificate", "podcertificates"},
		} {
			if ref.set {
				s.ban(at.Child(ref.child), ref.needs)
			}
		}
	}
}

// volumeSecret names the old volume type that has a secret in it, if one has.
func volumeSecret(v *v1.Volume) string {
	switch {
	case v.CephFS != nil && v.CephFS.SecretRef != nil:
		return "cephfs"
	case v.Cinder != nil && v.Cinder.SecretRef != nil:
		return "cinder"
	case v.FlexVolume != nil && v.FlexVolume.SecretRef != nil:
		return "flexVolume"
	case v.RBD != nil && v.RBD.SecretRef != nil:
		return "rbd"
	case v.ScaleIO != nil && v.ScaleIO.SecretRef != nil:
		return "scaleIO"
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		return "iscsi"
	case v.StorageOS != nil && v.StorageOS.SecretRef != nil:
		return "storageos"
	}
	return ""
}
