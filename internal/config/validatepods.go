package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"
)

func (l *loaded) gate(name string) bool { return l.gates.Enabled(featuregate.Feature(name)) }

func (v *validator) pods() {
	kc := v.kc
	for i, server := range kc.ClusterDNS {
		if net.ParseIP(server) == nil {
			v.errs = append(v.errs, field.Invalid(at("clusterDNS").Index(i), server, "must be an IP address"))
		}
	}
	if kc.ClusterDomain != "" {
		for _, why := range validation.IsDNS1123Subdomain(strings.TrimSuffix(kc.ClusterDomain, ".")) {
			v.bad("clusterDomain", kc.ClusterDomain, why)
		}
	}
	if limit := kc.CrashLoopBackOff.MaxContainerRestartPeriod; limit != nil {
		within(v, "crashLoopBackOff.maxContainerRestartPeriod", limit.Duration, time.Second, maxCrashBackoff)
	}
	oneOf(v, "hairpinMode", kc.HairpinMode, "none", "promiscuous-bridge", "hairpin-veth")
	v.check(!kc.RunOnce, "runOnce", kc.RunOnce, "is not supported any more; remove it")
	v.check(kc.EvictionMaxPodGracePeriod >= -1, "evictionMaxPodGracePeriod", kc.EvictionMaxPodGracePeriod, "must be -1 or more")
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	for i, taint := range kc.RegisterWithTaints {
		p := at("registerWithTaints").Index(i)
		if !slices.Contains(effects, taint.Effect) {
			v.errs = append(v.errs, field.NotSupported(p.Child("effect"), taint.Effect, effects))
		}
		for _, why := range validation.IsQualifiedName(taint.Key) {
			v.errs = append(v.errs, field.Invalid(p.Child("key"), taint.Key, why))
		}
		if taint.TimeAdded != nil {
			v.errs = append(v.errs, field.Forbidden(p.Child("timeAdded"), "is set by the API server"))
		}
	}
	if u := kc.UserNamespaces; u != nil && u.IDsPerPod != nil {
		const unit = 65536
		within(v, "userNamespaces.idsPerPod", *u.IDsPerPod, unit, math.MaxUint32)
		v.check(*u.IDsPerPod%unit == 0, "userNamespaces.idsPerPod", *u.IDsPerPod, fmt.Sprintf("must be a multiple of %d", unit))
	}
}

func (v *validator) managers() {
	kc := v.kc
	oneOf(v, "cpuManagerPolicy", kc.CPUManagerPolicy, "none", "static")
	oneOf(v, "memoryManagerPolicy", kc.MemoryManagerPolicy, kubeletconfig.NoneMemoryManagerPolicy, kubeletconfig.StaticMemoryManagerPolicy)
	oneOf(v, "topologyManagerPolicy", kc.TopologyManagerPolicy, kubeletconfig.NoneTopologyManagerPolicy, kubeletconfig.BestEffortTopologyManagerPolicy,
		kubeletconfig.RestrictedTopologyManagerPolicy, kubeletconfig.SingleNumaNodeTopologyManagerPolicy)
	oneOf(v, "topologyManagerScope", kc.TopologyManagerScope, kubeletconfig.ContainerTopologyManagerScope, kubeletconfig.PodTopologyManagerScope)
	if kc.ReservedSystemCPUs == "" {
		return
	}
	if _, err := cpuset.Parse(kc.ReservedSystemCPUs); err != nil {
		v.bad("reservedSystemCPUs", kc.ReservedSystemCPUs, err.Error())
	}
	v.check(kc.SystemReservedCgroup == "" && kc.KubeReservedCgroup == "", "reservedSystemCPUs", kc.ReservedSystemCPUs,
		"may not be set together with systemReservedCgroup or kubeReservedCgroup")
}

func (v *validator) shutdown() {
	kc := v.kc
	whole, critical := kc.ShutdownGracePeriod.Duration, kc.ShutdownGracePeriodCriticalPods.Duration
	v.check(whole == 0 || whole >= time.Second, "shutdownGracePeriod", whole, "must be 0 or at least 1s")
	v.check(critical == 0 || critical >= time.Second, "shutdownGracePeriodCriticalPods", critical, "must be 0 or at least 1s")
	v.check(critical <= whole, "shutdownGracePeriodCriticalPods", critical, fmt.Sprintf("is a part of shutdownGracePeriod, which is %v", whole))
	v.check(len(kc.ShutdownGracePeriodByPodPriority) == 0 || whole == 0 && critical == 0, "shutdownGracePeriodByPodPriority",
		len(kc.ShutdownGracePeriodByPodPriority), "may not be set together with shutdownGracePeriod")
}

func (v *validator) logs() {
	kc := v.kc
	v.cleanPath("podLogsDir", kc.PodLogsDir)
	ascii := !strings.ContainsFunc(kc.PodLogsDir, func(r rune) bool { return r > 127 })
	v.check(ascii, "podLogsDir", kc.PodLogsDir, "may hold ASCII characters only")
	if kc.StaticPodPath != "" {
		v.cleanPath("staticPodPath", kc.StaticPodPath)
	}
	if _, err := resource.ParseQuantity(kc.ContainerLogMaxSize); err != nil {
		v.bad("containerLogMaxSize", kc.ContainerLogMaxSize, err.Error())
	}
	atLeast(v, "containerLogMaxFiles", *kc.ContainerLogMaxFiles, 2)
	atLeast(v, "containerLogMaxWorkers", *kc.ContainerLogMaxWorkers, 1)
	atLeast(v, "containerLogMonitorInterval", kc.ContainerLogMonitorInterval.Duration, 3*time.Second)
	oneOf(v, "logging.format", kc.Logging.Format, "text", "json")
	v.check(kc.Logging.Verbosity <= math.MaxInt32, "logging.verbosity", kc.Logging.Verbosity, "is too large")
}

// gated fields may be set only while their feature gate is on.
func (v *validator) gated() {
	kc := v.kc
	needs := func(set bool, path string, value any, gate string) {
		v.check(!set || v.on(gate), path, value, "needs the feature gate "+gate)
	}
	needs(len(kc.DefaultPodSysctls) > 0, "defaultPodSysctls", kc.DefaultPodSysctls, "DefaultPodSysctls")
	needs(kc.ServerTLSBootstrap, "serverTLSBootstrap", true, "RotateKubeletServerCertificate")
	needs(kc.CPUCFSQuotaPeriod.Duration != 100*time.Millisecond, "cpuCFSQuotaPeriod", kc.CPUCFSQuotaPeriod.Duration, "CustomCPUCFSQuotaPeriod")
	needs(kc.ShutdownGracePeriod.Duration > 0, "shutdownGracePeriod", kc.ShutdownGracePeriod.Duration, "GracefulNodeShutdown")
	needs(len(kc.ShutdownGracePeriodByPodPriority) > 0, "shutdownGracePeriodByPodPriority", len(kc.ShutdownGracePeriodByPodPriority), "GracefulNodeShutdownBasedOnPodPriority")
	needs(kc.CrashLoopBackOff.MaxContainerRestartPeriod != nil, "crashLoopBackOff.maxContainerRestartPeriod", kc.CrashLoopBackOff.MaxContainerRestartPeriod, "KubeletCrashLoopBackOffMax")
	needs(kc.ImagePullCredentialsVerificationPolicy != "", "imagePullCredentialsVerificationPolicy", kc.ImagePullCredentialsVerificationPolicy, "KubeletEnsureSecretPulledImages")
	needs(kc.MemoryReservationPolicy == kubeletconfig.TieredReservationMemoryReservationPolicy, "memoryReservationPolicy", kc.MemoryReservationPolicy, "MemoryQoS")
	needs(len(kc.QOSReserved) > 0, "qosReserved", kc.QOSReserved, "QOSReserved")
}
