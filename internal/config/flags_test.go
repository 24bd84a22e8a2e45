package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/config"
)

func TestFlagForms(t *testing.T) {
	c := load(t, nil,
		"--eviction-hard=memory.available<1Gi,nodefs.available<5%", "--eviction-hard=imagefs.available<1%",
		"--system-reserved=cpu=100m,memory=1Gi", "--cluster-dns=10.0.0.1,10.0.0.2", "--cluster-dns=10.0.0.3",
		"--manifest-url-header=a:1,a:2", "--manifest-url-header=b:3", "--enforce-node-allocatable=",
		"--register-with-taints=k=v:NoSchedule,only:NoExecute", "--reserved-memory=0:memory=1Gi;1:memory=2Gi",
		"--cpu-cfs-quota=false", "--file-check-frequency=0", "--pod-max-pids=0x10", "-v=4", "--vmodule=a=1,b*=2",
		"--cpu-manager-policy-options=full-pcpus-only=true", "--log-text-info-buffer-size=1Ki", "--feature-gates=LoggingAlphaOptions=true", "--resolv-conf=")
	k := c.Kubelet
	require.Empty(t, cmp.Diff(map[string]string{"memory.available": "1Gi", "nodefs.available": "5%", "imagefs.available": "1%"}, k.EvictionHard))
	require.Empty(t, cmp.Diff(map[string]string{"cpu": "100m", "memory": "1Gi"}, k.SystemReserved))
	require.Equal(t, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, k.ClusterDNS)
	require.Empty(t, cmp.Diff(map[string][]string{"a": {"1", "2"}, "b": {"3"}}, k.StaticPodURLHeader))
	require.Empty(t, k.EnforceNodeAllocatable)
	require.Len(t, k.RegisterWithTaints, 2)
	require.Len(t, k.ReservedMemory, 2)
	require.False(t, *k.CPUCFSQuota)
	require.Zero(t, k.FileCheckFrequency.Duration, "a zero flag is a zero, not a default")
	require.EqualValues(t, 16, *k.PodPidsLimit)
	require.EqualValues(t, 4, k.Logging.Verbosity)
	require.Len(t, k.Logging.VModule, 2)
	require.Equal(t, map[string]string{"full-pcpus-only": "true"}, k.CPUManagerPolicyOptions)
	require.Empty(t, *k.ResolverConfig)
}

func TestFlagsThatCannotBeParsed(t *testing.T) {
	for _, arg := range []string{
		"--no-such-flag", "--max-pods=many", "--max-pods=3000000000", "--address=here", "--sync-frequency=1",
		"--fail-swap-on=maybe", "--feature-gates=A", "--feature-gates=A=maybe", "--eviction-hard=a=1",
		"--register-with-taints=a", "--reserved-memory=a:memory=1Gi", "--reserved-memory=0:memory=x", "--vmodule=a",
	} {
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		config.AddFlags(fs)
		require.Error(t, fs.Parse([]string{arg}), arg)
	}
}

func TestFlagsWithoutEffectWarnOnce(t *testing.T) {
	c := load(t, nil, "--node-ip=10.0.0.1", "--node-labels=a=b", "--seccomp-default", "--kernel-memcg-notification")
	require.Equal(t, []string{
		"--node-ip has no effect in this release",
		"--node-labels has no effect in this release",
		"--kernel-memcg-notification: kernelMemcgNotification is not supported yet and has no effect",
	}, c.Warnings)
	require.True(t, *c.Kubelet.SeccompDefault)
}

func TestKubeconfigIsRefused(t *testing.T) {
	flags, _ := setup(t, nil, "--kubeconfig=/etc/kubernetes/kubelet.conf")
	_, err := config.Load(flags)
	require.ErrorContains(t, err, "--kubeconfig is not supported in this release")
}
