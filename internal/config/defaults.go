package config

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
)

// Defaults that flowlet itself refers to; the kubelet's values.
const (
	DefaultRootDir    = "/var/lib/kubelet"
	DefaultPodLogsDir = "/var/log/pods"
	maxCrashBackoff   = 300 * time.Second
)

// setDefaults fills what is not set with the defaults of kubelet v1.37.2.
func setDefaults(kc *kubeletconfig.KubeletConfiguration) {
	defaultSources(kc)
	defaultServers(kc)
	defaultAPI(kc)
	defaultImages(kc)
	defaultResources(kc)
	defaultPods(kc)
	defaultManagers(kc)
	defaultLogs(kc)
}

func str[T ~string](p *T, value T) { *p = cmp.Or(*p, value) }

func number[T int32 | int64](p *T, value T) { *p = cmp.Or(*p, value) }

func pointer[T any](p **T, value T) {
	if *p == nil {
		*p = ptr.To(value)
	}
}

func duration(p *metav1.Duration, value time.Duration) { p.Duration = cmp.Or(p.Duration, value) }

func defaultSources(kc *kubeletconfig.KubeletConfiguration) {
	duration(&kc.SyncFrequency, time.Minute)
	duration(&kc.FileCheckFrequency, 20*time.Second)
	duration(&kc.HTTPCheckFrequency, 20*time.Second)
	str(&kc.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")
	duration(&kc.RuntimeRequestTimeout, 2*time.Minute)
}

func defaultServers(kc *kubeletconfig.KubeletConfiguration) {
	pointer(&kc.EnableServer, true)
	str(&kc.Address, "0.0.0.0")
	number(&kc.Port, 10250)
	pointer(&kc.HealthzPort, 10248)
	str(&kc.HealthzBindAddress, "127.0.0.1")
	pointer(&kc.Authentication.Anonymous.Enabled, false)
	pointer(&kc.Authentication.Webhook.Enabled, true)
	duration(&kc.Authentication.Webhook.CacheTTL, 2*time.Minute)
	str(&kc.Authorization.Mode, kubeletconfig.KubeletAuthorizationModeWebhook)
	duration(&kc.Authorization.Webhook.CacheAuthorizedTTL, 5*time.Minute)
	duration(&kc.Authorization.Webhook.CacheUnauthorizedTTL, 30*time.Second)
	pointer(&kc.EnableDebuggingHandlers, true)
	pointer(&kc.EnableProfilingHandler, true)
	pointer(&kc.EnableDebugFlagsHandler, true)
	pointer(&kc.EnableSystemLogHandler, true)
	duration(&kc.StreamingConnectionIdleTimeout, 4*time.Hour)
}

func defaultAPI(kc *kubeletconfig.KubeletConfiguration) {
	pointer(&kc.EventRecordQPS, 50)
	number(&kc.EventBurst, 100)
	pointer(&kc.KubeAPIQPS, 50)
	number(&kc.KubeAPIBurst, 100)
	str(&kc.ContentType, "application/vnd.kubernetes.protobuf")
	// Who reports more often also reports unchanged status as often.
	duration(&kc.NodeStatusReportFrequency, cmp.Or(kc.NodeStatusUpdateFrequency.Duration, 5*time.Minute))
	duration(&kc.NodeStatusUpdateFrequency, 10*time.Second)
	number(&kc.NodeLeaseDurationSeconds, 40)
	pointer(&kc.NodeStatusMaxImages, 50)
	pointer(&kc.RegisterNode, true)
	str(&kc.ConfigMapAndSecretChangeDetectionStrategy, kubeletconfig.WatchChangeDetectionStrategy)
	pointer(&kc.EnableControllerAttachDetach, true)
}

func defaultImages(kc *kubeletconfig.KubeletConfiguration) {
	pointer(&kc.RegistryPullQPS, 5)
	number(&kc.RegistryBurst, 10)
	pointer(&kc.SerializeImagePulls, ptr.Deref(kc.MaxParallelImagePulls, 0) < 2)
	duration(&kc.ImageMinimumGCAge, 2*time.Minute)
	pointer(&kc.ImageGCHighThresholdPercent, 85)
	pointer(&kc.ImageGCLowThresholdPercent, 80)
	if gateOn(kc, "KubeletEnsureSecretPulledImages") {
		str(&kc.ImagePullCredentialsVerificationPolicy, kubeletconfig.NeverVerifyPreloadedImages)
	}
}

func defaultResources(kc *kubeletconfig.KubeletConfiguration) {
	pointer(&kc.OOMScoreAdj, -999)
	pointer(&kc.CgroupsPerQOS, true)
	str(&kc.CgroupDriver, "cgroupfs")
	pointer(&kc.CPUCFSQuota, true)
	pointer(&kc.CPUCFSQuotaPeriod, metav1.Duration{Duration: 100 * time.Millisecond})
	number(&kc.MaxOpenFiles, 1000000)
	pointer(&kc.FailSwapOn, true)
	pointer(&kc.FailCgroupV1, true)
	if kc.EnforceNodeAllocatable == nil {
		kc.EnforceNodeAllocatable = []string{"pods"}
	}
	str(&kc.MemoryReservationPolicy, kubeletconfig.NoneMemoryReservationPolicy)
	pointer(&kc.LocalStorageCapacityIsolation, true)
	duration(&kc.EvictionPressureTransitionPeriod, 5*time.Minute)
	pointer(&kc.MergeDefaultEvictionSettings, false)
}

func defaultPods(kc *kubeletconfig.KubeletConfiguration) {
	number(&kc.MaxPods, 110)
	if ptr.Deref(kc.PodPidsLimit, -1) < 0 {
		kc.PodPidsLimit = ptr.To[int64](-1) // what the node has
	}
	pointer(&kc.ResolverConfig, "/etc/resolv.conf")
	str(&kc.HairpinMode, kubeletconfig.PromiscuousBridge)
	pointer(&kc.MakeIPTablesUtilChains, true)
	pointer(&kc.IPTablesMasqueradeBit, 14)
	pointer(&kc.IPTablesDropBit, 15)
	pointer(&kc.SeccompDefault, false)
	str(&kc.VolumePluginDir, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")
	duration(&kc.VolumeStatsAggPeriod, time.Minute)
	if gateOn(kc, "KubeletCrashLoopBackOffMax") {
		pointer(&kc.CrashLoopBackOff.MaxContainerRestartPeriod, metav1.Duration{Duration: maxCrashBackoff})
	}
}

func defaultManagers(kc *kubeletconfig.KubeletConfiguration) {
	str(&kc.CPUManagerPolicy, "none")
	duration(&kc.CPUManagerReconcilePeriod, 10*time.Second)
	str(&kc.MemoryManagerPolicy, kubeletconfig.NoneMemoryManagerPolicy)
	str(&kc.TopologyManagerPolicy, kubeletconfig.NoneTopologyManagerPolicy)
	str(&kc.TopologyManagerScope, kubeletconfig.ContainerTopologyManagerScope)
}

func defaultLogs(kc *kubeletconfig.KubeletConfiguration) {
	str(&kc.PodLogsDir, DefaultPodLogsDir)
	str(&kc.ContainerLogMaxSize, "10Mi")
	pointer(&kc.ContainerLogMaxFiles, 5)
	pointer(&kc.ContainerLogMaxWorkers, 1)
	pointer(&kc.ContainerLogMonitorInterval, metav1.Duration{Duration: 10 * time.Second})
	logsapi.SetRecommendedLoggingConfiguration(&kc.Logging)
}

// setDefaultEviction fills the hard eviction thresholds. The kubelet does so
// only when it reads a configuration from files.
func setDefaultEviction(kc *kubeletconfig.KubeletConfiguration) {
	if kc.EvictionHard != nil && !*kc.MergeDefaultEvictionSettings {
		return
	}
	hard := map[string]string{
		"memory.available":   "100Mi",
		"nodefs.available":   "10%",
		"nodefs.inodesFree":  "5%",
		"imagefs.available":  "15%",
		"imagefs.inodesFree": "5%",
	}
	for signal, threshold := range kc.EvictionHard {
		hard[signal] = threshold
	}
	kc.EvictionHard = hard
}
