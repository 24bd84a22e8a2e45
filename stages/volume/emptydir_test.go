package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/mount-utils"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/stages/volume"
)

const onDisk = "volumes/kubernetes.io~empty-dir/v"

func TestEmptyDirKeepsItsContent(t *testing.T) {
	f, v := newFixture(t), emptyDir("", "")
	p := testPod(v)
	_, err := f.volumes.VolumePath(p, "v")
	require.ErrorContains(t, err, "volume v of pod ns/p: it is not set up")

	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	dir, err := f.volumes.VolumePath(p, "v")
	require.NoError(t, err)
	require.Equal(t, f.path(onDisk), dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o777), info.Mode().Perm(), "whatever the umask")
	require.FileExists(t, f.path("plugins/kubernetes.io~empty-dir/v/ready"))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	require.FileExists(t, filepath.Join(dir, "data"))
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "what containers did to it stays")

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v), "a mark without a directory is not believed")
	require.DirExists(t, dir)
	require.Empty(t, f.mounts.GetLog())
}

func TestEmptyDirGivesItsGroup(t *testing.T) {
	f, v := newFixture(t), emptyDir("", "")
	p := testPod(v)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(int64(os.Getgid()))}
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	info, err := os.Stat(f.path(onDisk))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSetgid)
}

func TestEmptyDirInMemory(t *testing.T) {
	const gi, mi = 1 << 30, 1 << 20
	tests := []struct {
		name      string
		size      string
		node, pod int64
		want      []string
	}{
		{"what the node has", "", gi, 0, []string{"size=1073741824", "noswap"}},
		{"the pod's limit", "", gi, mi, []string{"size=1048576", "noswap"}},
		{"its own limit", "4Ki", gi, mi, []string{"size=4096", "noswap"}},
		{"a larger own limit does not count", "2Gi", gi, 0, []string{"size=1073741824", "noswap"}},
		{"nothing known", "", 0, 0, []string{"noswap"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, v := newFixture(t), emptyDir(corev1.StorageMediumMemory, tt.size)
			f.volumes.NodeMemory = tt.node
			f.volumes.PodMemory = func(*corev1.Pod) int64 { return tt.pod }
			for range 2 {
				require.NoError(t, f.volumes.Ensure(t.Context(), testPod(v), &v))
			}
			require.Len(t, f.mounts.MountPoints, 1, "mounted once")
			require.Equal(t, mount.MountPoint{Device: "tmpfs", Path: f.path(onDisk), Type: "tmpfs", Opts: tt.want}, f.mounts.MountPoints[0])
		})
	}
}

func TestEmptyDirInMemoryIsMountedAgainWhenTheMountIsGone(t *testing.T) {
	f, v := newFixture(t), emptyDir(corev1.StorageMediumMemory, "")
	require.NoError(t, f.volumes.Ensure(t.Context(), testPod(v), &v))
	f.mounts.MountPoints = nil // the node was started anew
	require.NoError(t, f.volumes.Ensure(t.Context(), testPod(v), &v))
	require.Len(t, f.mounts.MountPoints, 1)
}

func TestEmptyDirOfHugePages(t *testing.T) {
	asking := func(v corev1.Volume, sizes ...corev1.ResourceName) *corev1.Pod {
		p := testPod(v)
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{}
		for _, s := range sizes {
			p.Spec.Containers[0].Resources.Requests[s] = resource.MustParse("4Mi")
		}
		return p
	}
	plain, sized := emptyDir("HugePages", ""), emptyDir("HugePages-2Mi", "")
	tests := []struct {
		name string
		v    corev1.Volume
		pod  *corev1.Pod
		err  string
	}{
		{"one size", plain, asking(plain, "hugepages-2Mi"), ""},
		{"named size among others", sized, asking(sized, "hugepages-2Mi", "hugepages-1Gi"), ""},
		{"two sizes", plain, asking(plain, "hugepages-2Mi", "hugepages-1Gi"), "exactly one size; they request 2"},
		{"none", plain, asking(plain), "they request 0"},
		{"another size", sized, asking(sized, "hugepages-1Gi"), "no container requests huge pages of that size"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			err := f.volumes.Ensure(t.Context(), tt.pod, &tt.v)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.Empty(t, f.mounts.MountPoints)
				return
			}
			require.NoError(t, err)
			require.NoError(t, f.volumes.Ensure(t.Context(), tt.pod, &tt.v))
			require.Len(t, f.mounts.MountPoints, 1)
			require.Equal(t, []string{"pagesize=2097152"}, f.mounts.MountPoints[0].Opts)
		})
	}
}

func TestVolumesThatCannotBeSetUp(t *testing.T) {
	f := newFixture(t)
	configMap := corev1.Volume{Name: "v"}
	configMap.ConfigMap = &corev1.ConfigMapVolumeSource{}
	outside, medium := emptyDir("", ""), emptyDir("Tape", "")
	outside.Name = "../x"
	for want, v := range map[string]corev1.Volume{
		"volume v of pod ns/p: a volume of type configMap is not supported": configMap,
		`volume ../x of pod ns/p: volume "../x" cannot be`:                  outside,
		`medium "Tape" is not known`:                                        medium,
		"type none is not supported":                                        {Name: "v"},
	} {
		require.ErrorContains(t, f.volumes.Ensure(t.Context(), testPod(v), &v), want)
	}
	_, err := f.volumes.VolumePath(testPod(configMap), "v")
	require.ErrorContains(t, err, "configMap")
	_, err = f.volumes.VolumePath(testPod(), "v")
	require.ErrorContains(t, err, "no such volume")
	require.False(t, volume.Supported(&configMap))
}

// Storage that needs programs of its own on the node, and what Kubernetes has
// removed or leaves to CSI drivers.
func TestVolumesOfStorageSystems(t *testing.T) {
	f := newFixture(t)
	for name, source := range map[string]corev1.VolumeSource{
		"iscsi":                {ISCSI: &corev1.ISCSIVolumeSource{}},
		"fc":                   {FC: &corev1.FCVolumeSource{}},
		"flexVolume":           {FlexVolume: &corev1.FlexVolumeSource{}},
		"gitRepo":              {GitRepo: &corev1.GitRepoVolumeSource{}},
		"rbd":                  {RBD: &corev1.RBDVolumeSource{}},
		"cephfs":               {CephFS: &corev1.CephFSVolumeSource{}},
		"flocker":              {Flocker: &corev1.FlockerVolumeSource{}},
		"quobyte":              {Quobyte: &corev1.QuobyteVolumeSource{}},
		"photonPersistentDisk": {PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{}},
		"scaleIO":              {ScaleIO: &corev1.ScaleIOVolumeSource{}},
		"storageos":            {StorageOS: &corev1.StorageOSVolumeSource{}},
		"gcePersistentDisk":    {GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}},
		"awsElasticBlockStore": {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
		"cinder":               {Cinder: &corev1.CinderVolumeSource{}},
		"vsphereVolume":        {VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}},
		"azureDisk":            {AzureDisk: &corev1.AzureDiskVolumeSource{}},
		"portworxVolume":       {PortworxVolume: &corev1.PortworxVolumeSource{}},
	} {
		v := corev1.Volume{Name: "v", VolumeSource: source}
		require.False(t, volume.Supported(&v), name)
		require.ErrorContains(t, f.volumes.Ensure(t.Context(), testPod(v), &v),
			"a volume of type "+name+" is not supported: mount it on the node and use hostPath, or use a CSI driver")
	}
}
