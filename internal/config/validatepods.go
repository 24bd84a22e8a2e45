package config

import (
	"fmt"
	"maps"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-helpers/node/util/sysctl"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/plain"
)

func (l *loaded) gate(name string) bool { return l.gates.Enabled(featuregate.Feature(name)) }

func (v *validator) pods() {
	kc := v.kc
	for i, server := range kc.ClusterDNS {
		if net.ParseIP(server) == nil {
			v.errs = append(v.errs, field.Invalid(at("clusterDNS").Index(i), server, "must be an IP address"))
		}
	}
	v.check(!strings.ContainsFunc(kc.ClusterDomain, unicode.IsSpace), "clusterDomain", kc.ClusterDomain, "may not have blanks, it is one name in resolv.conf")
	if limit := kc.CrashLoopBackOff.MaxContainerRestartPeriod; limit != nil {
		within(v, "crashLoopBackOff.maxContainerRestartPeriod", limit.Duration, time.Second, maxCrashBackoff)
	}
	oneOf(v, "hairpinMode", kc.HairpinMode, "none", "promiscuous-bridge", "hairpin-veth")
	v.check(!kc.RunOnce, "runOnce", kc.RunOnce, "is not supported any more; remove it")
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

// reservedMemory checks what of a NUMA node is set aside.
func (v *validator) reservedMemory() {
	type reserved struct {
		node int32
		name corev1.ResourceName
	}
	seen := map[reserved]bool{}
	for i, r := range v.kc.ReservedMemory {
		for name, q := range r.Limits {
			p := at("reservedMemory").Index(i).Child("limits").Key(string(name))
			if name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				v.errs = append(v.errs, field.NotSupported(p, name, []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceHugePagesPrefix + "SIZE"}))
			}
			if q.IsZero() {
				v.errs = append(v.errs, field.Invalid(p, q.String(), "may not be zero"))
			}
			if seen[reserved{r.NumaNode, name}] {
				v.errs = append(v.errs, field.Duplicate(p, name))
			}
			seen[reserved{r.NumaNode, name}] = true
		}
	}
}

func (v *validator) managers() {
	kc := v.kc
	v.reservedMemory()
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
		v.check(filepath.IsAbs(kc.StaticPodPath), "staticPodPath", kc.StaticPodPath, "must be an absolute path")
	}
	if _, err := plain.Parse(kc.ContainerLogMaxSize); err != nil {
		v.bad("containerLogMaxSize", kc.ContainerLogMaxSize, err.Error())
	}
	atLeast(v, "containerLogMaxFiles", *kc.ContainerLogMaxFiles, 2)
	atLeast(v, "containerLogMaxWorkers", *kc.ContainerLogMaxWorkers, 1)
	atLeast(v, "containerLogMonitorInterval", kc.ContainerLogMonitorInterval.Duration, 3*time.Second)
	oneOf(v, "logging.format", kc.Logging.Format, "text", "json")
	v.check(kc.Logging.FlushFrequency.Duration.Duration > 0, "logging.flushFrequency", kc.Logging.FlushFrequency.Duration.Duration.String(), "must be more than 0s")
	v.check(len(kc.Logging.VModule) == 0 || kc.Logging.Format == "text", "logging.vmodule", len(kc.Logging.VModule), "only for the format text")
	for i, m := range kc.Logging.VModule {
		p := at("logging.vmodule").Index(i)
		if m.FilePattern == "" || strings.ContainsAny(m.FilePattern, "=,") {
			v.errs = append(v.errs, field.Invalid(p.Child("filePattern"), m.FilePattern, `must be there, without "=" and ","`))
		}
		if m.Verbosity > math.MaxInt32 {
			v.errs = append(v.errs, field.Invalid(p.Child("verbosity"), m.Verbosity, "is too large"))
		}
	}
	v.routing("logging.options.text", kc.Logging.Options.Text.OutputRoutingOptions)
	v.routing("logging.options.json", kc.Logging.Options.JSON.OutputRoutingOptions)
	v.check(kc.Logging.Verbosity <= math.MaxInt32, "logging.verbosity", kc.Logging.Verbosity, "is too large")
}

// podSysctls checks the sysctls that all pods get.
func (v *validator) podSysctls() {
	if !v.on("DefaultPodSysctls") {
		return
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(v.kc.DefaultPodSysctls)) {
		p := at("defaultPodSysctls").Key(name)
		if namespace, _, _ := sysctl.GetNamespace(name); namespace == sysctl.UnknownNamespace {
			v.errs = append(v.errs, field.Invalid(p, name, "is not known to be kept apart for each pod by the kernel"))
		}
		if normal := sysctl.NormalizeName(name); seen[normal] {
			v.errs = append(v.errs, field.Duplicate(p, normal))
		} else {
			seen[normal] = true
		}
	}
}

// oldThrottlingFactor was the default of earlier versions, so files have it that
// ask for nothing.
const oldThrottlingFactor = 0.9

// gated fields may be set only while their feature gate is on.
func (v *validator) gated() {
	kc := v.kc
	v.podSysctls()
	needs := func(set bool, path string, value any, gate string) {
		v.check(!set || v.on(gate), path, value, "needs the feature gate "+gate)
	}
	needs(len(kc.DefaultPodSysctls) > 0, "defaultPodSysctls", kc.DefaultPodSysctls, "DefaultPodSysctls")
	factor := ptr.Deref(kc.MemoryThrottlingFactor, oldThrottlingFactor)
	needs(factor != oldThrottlingFactor, "memoryThrottlingFactor", factor, "MemoryQoS")
	needs(kc.ServerTLSBootstrap, "serverTLSBootstrap", true, "RotateKubeletServerCertificate")
	needs(kc.CPUCFSQuotaPeriod.Duration != 100*time.Millisecond, "cpuCFSQuotaPeriod", kc.CPUCFSQuotaPeriod.Duration, "CustomCPUCFSQuotaPeriod")
	needs(kc.ShutdownGracePeriod.Duration > 0, "shutdownGracePeriod", kc.ShutdownGracePeriod.Duration, "GracefulNodeShutdown")
	needs(len(kc.ShutdownGracePeriodByPodPriority) > 0, "shutdownGracePeriodByPodPriority", len(kc.ShutdownGracePeriodByPodPriority), "GracefulNodeShutdownBasedOnPodPriority")
	needs(kc.CrashLoopBackOff.MaxContainerRestartPeriod != nil, "crashLoopBackOff.maxContainerRestartPeriod", kc.CrashLoopBackOff.MaxContainerRestartPeriod, "KubeletCrashLoopBackOffMax")
	needs(kc.ImagePullCredentialsVerificationPolicy != "", "imagePullCredentialsVerificationPolicy", kc.ImagePullCredentialsVerificationPolicy, "KubeletEnsureSecretPulledImages")
	needs(kc.MemoryReservationPolicy == kubeletconfig.TieredReservationMemoryReservationPolicy, "memoryReservationPolicy", kc.MemoryReservationPolicy, "MemoryQoS")
	needs(len(kc.QOSReserved) > 0, "qosReserved", kc.QOSReserved, "QOSReserved")
}

func (v *validator) routing(path string, o logsapi.OutputRoutingOptions) {
	if v.on("LoggingAlphaOptions") {
		return
	}
	for name, set := range map[string]bool{"splitStream": o.SplitStream, "infoBufferSize": o.InfoBufferSize.Value() != 0} {
		if set {
			v.errs = append(v.errs, field.Forbidden(at(path).Child(name), "needs the feature gate LoggingAlphaOptions"))
		}
	}
}
