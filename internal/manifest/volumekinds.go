package manifest

import v1 "k8s.io/api/core/v1"

// volumeKind is one volume type and whether a volume has it.
type volumeKind struct {
	name string // as the field is called
	set  bool
}

// volumeKinds lists all types, in the order in which the API server looks at
// them.
func volumeKinds(v *v1.Volume) []volumeKind {
	return []volumeKind{
		{"emptyDir", v.EmptyDir != nil},
		{"hostPath", v.HostPath != nil},
		{"gitRepo", v.GitRepo != nil},
		{"gcePersistentDisk", v.GCEPersistentDisk != nil},
		{"awsElasticBlockStore", v.AWSElasticBlockStore != nil},
		{"secret", v.Secret != nil},
		{"nfs", v.NFS != nil},
		{"iscsi", v.ISCSI != nil},
		{"glusterfs", v.Glusterfs != nil},
		{"flocker", v.Flocker != nil},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil},
		{"rbd", v.RBD != nil},
		{"cinder", v.Cinder != nil},
		{"cephfs", v.CephFS != nil},
		{"quobyte", v.Quobyte != nil},
		{"downwardAPI", v.DownwardAPI != nil},
		{"fc", v.FC != nil},
		{"flexVolume", v.FlexVolume != nil},
		{"configMap", v.ConfigMap != nil},
		{"azureFile", v.AzureFile != nil},
		{"vsphereVolume", v.VsphereVolume != nil},
		{"photonPersistentDisk", v.PhotonPersistentDisk != nil},
		{"portworxVolume", v.PortworxVolume != nil},
		{"azureDisk", v.AzureDisk != nil},
		{"storageos", v.StorageOS != nil},
		{"projected", v.Projected != nil},
		{"scaleIO", v.ScaleIO != nil},
		{"csi", v.CSI != nil},
		{"ephemeral", v.Ephemeral != nil},
		{"image", v.Image != nil},
	}
}
