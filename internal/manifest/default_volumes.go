package manifest

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

func defaultVolume(v *v1.Volume) {
	if v.VolumeSource == (v1.VolumeSource{}) {
		v.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	if v.Image != nil {
		setIfEmpty(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.HostPath != nil {
		setIfNil(&v.HostPath.Type, v1.HostPathUnset)
	}
	if v.Secret != nil {
		setIfNil(&v.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		setIfNil(&v.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		setIfNil(&v.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardItems(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		defaultProjected(v.Projected)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		setIfNil(&claim.VolumeMode, v1.PersistentVolumeFilesystem)
		roundUp(claim.Resources.Limits, claim.Resources.Requests)
	}
	defaultLegacyVolume(v)
}

func defaultProjected(p *v1.ProjectedVolumeSource) {
	setIfNil(&p.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
	for _, source := range p.Sources {
		if source.DownwardAPI != nil {
			defaultDownwardItems(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			setIfNil(&source.ServiceAccountToken.ExpirationSeconds, int64(time.Hour/time.Second))
		}
	}
}

func defaultDownwardItems(items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// defaultLegacyVolume covers the volume types that only old manifests use.
func defaultLegacyVolume(v *v1.Volume) {
	if v.ISCSI != nil {
		setIfEmpty(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		setIfEmpty(&v.RBD.RBDPool, "rbd")
		setIfEmpty(&v.RBD.RadosUser, "admin")
		setIfEmpty(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		setIfNil(&v.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
		setIfNil(&v.AzureDisk.FSType, "ext4")
		setIfNil(&v.AzureDisk.ReadOnly, false)
		setIfNil(&v.AzureDisk.Kind, v1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		setIfEmpty(&v.ScaleIO.StorageMode, "ThinProvisioned")
		setIfEmpty(&v.ScaleIO.FSType, "xfs")
	}
}
