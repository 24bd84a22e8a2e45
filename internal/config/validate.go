package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/flowlet/flowlet/internal/plain"
)

// validate collects all that is wrong. Every error begins with the file or
// flag that set the field, when one did.
func (l *loaded) validate() error {
	v := &validator{kc: l.kubelet, on: l.gate}
	v.servers()
	v.limits()
	v.images()
	v.resources()
	v.enforcement()
	v.pods()
	v.managers()
	v.shutdown()
	v.logs()
	v.gated()
	if len(v.errs) == 0 {
		return nil
	}
	lines := make([]string, len(v.errs))
	for i, e := range v.errs {
		lines[i] = l.located(e)
	}
	return fmt.Errorf("invalid configuration:\n  %s", strings.Join(lines, "\n  "))
}

// located puts the origin of the field, or of the map that holds it, in front.
func (l *loaded) located(e *field.Error) string {
	path := e.Field
	for {
		if origin, ok := l.origins[path]; ok {
			return origin + ": " + e.Error()
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return e.Error()
		}
		path = path[:cut]
	}
}

type validator struct {
	kc   *kubeletconfig.KubeletConfiguration
	on   func(gate string) bool
	errs field.ErrorList
}

func at(path string) *field.Path {
	names := strings.Split(path, ".")
	return field.NewPath(names[0], names[1:]...)
}

func (v *validator) bad(path string, value any, why string) {
	if d, ok := value.(time.Duration); ok { // not a number of nanoseconds
		value = d.String()
	}
	v.errs = append(v.errs, field.Invalid(at(path), value, why))
}

func (v *validator) check(ok bool, path string, value any, why string) {
	if !ok {
		v.bad(path, value, why)
	}
}

func within[T int32 | int64 | time.Duration](v *validator, path string, value, low, high T) {
	v.check(value >= low && value <= high, path, value, fmt.Sprintf("must be between %v and %v", low, high))
}

func atLeast[T int32 | int64 | time.Duration](v *validator, path string, value, low T) {
	v.check(value >= low, path, value, fmt.Sprintf("must be %v or more", low))
}

func oneOf[T ~string](v *validator, path string, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		v.errs = append(v.errs, field.NotSupported(at(path), value, allowed))
	}
}

func (v *validator) cleanPath(path, value string) {
	v.check(filepath.IsAbs(value), path, value, "must be an absolute path")
	v.check(filepath.Clean(value) == value, path, value, "must be a path without \"..\", \"//\" and a slash at its end")
}

func (v *validator) servers() {
	kc := v.kc
	v.check(validation.IsValidPortNum(int(kc.Port)) == nil, "port", kc.Port, "must be between 1 and 65535")
	within(v, "readOnlyPort", kc.ReadOnlyPort, 0, 65535)
	within(v, "healthzPort", *kc.HealthzPort, 0, 65535)
	v.check(net.ParseIP(kc.HealthzBindAddress) != nil, "healthzBindAddress", kc.HealthzBindAddress, "must be an IP address")
	v.check(net.ParseIP(kc.Address) != nil, "address", kc.Address, "must be an IP address")
	oneOf(v, "authorization.mode", kc.Authorization.Mode, kubeletconfig.KubeletAuthorizationModeAlwaysAllow, kubeletconfig.KubeletAuthorizationModeWebhook)
	v.endpoint("containerRuntimeEndpoint", kc.ContainerRuntimeEndpoint)
	if kc.ImageServiceEndpoint != "" {
		v.endpoint("imageServiceEndpoint", kc.ImageServiceEndpoint)
	}
	if kc.EnableSystemLogQuery != nil && *kc.EnableSystemLogQuery {
		v.check(*kc.EnableSystemLogHandler, "enableSystemLogQuery", true, "needs enableSystemLogHandler: true")
	}
	v.errs = append(v.errs, tracingapi.ValidateTracingConfiguration(kc.Tracing, nil, field.NewPath("tracing"))...)
}

// endpoint is a unix socket, or "sim:" for the embedded simulated runtime.
func (v *validator) endpoint(path, value string) {
	socket, isUnix := strings.CutPrefix(value, "unix://")
	ok := strings.HasPrefix(value, "sim:") || filepath.IsAbs(value) || isUnix && filepath.IsAbs(socket)
	v.check(ok, path, value, "must be a unix socket such as unix:///run/containerd/containerd.sock, or sim: for the simulated runtime")
}

// limits are plain numbers that may not be negative or too large.
func (v *validator) limits() {
	kc := v.kc
	durations := map[string]metav1.Duration{
		"syncFrequency": kc.SyncFrequency, "fileCheckFrequency": kc.FileCheckFrequency, "httpCheckFrequency": kc.HTTPCheckFrequency,
		"runtimeRequestTimeout": kc.RuntimeRequestTimeout, "streamingConnectionIdleTimeout": kc.StreamingConnectionIdleTimeout,
		"nodeStatusUpdateFrequency": kc.NodeStatusUpdateFrequency, "nodeStatusReportFrequency": kc.NodeStatusReportFrequency,
		"imageMinimumGCAge": kc.ImageMinimumGCAge, "imageMaximumGCAge": kc.ImageMaximumGCAge,
		"evictionPressureTransitionPeriod": kc.EvictionPressureTransitionPeriod, "cpuManagerReconcilePeriod": kc.CPUManagerReconcilePeriod,
		"authentication.webhook.cacheTTL": kc.Authentication.Webhook.CacheTTL,
	}
	for path, d := range durations {
		atLeast(v, path, d.Duration, 0)
	}
	numbers := map[string]int32{
		"eventRecordQPS": *kc.EventRecordQPS, "eventBurst": kc.EventBurst, "kubeAPIQPS": *kc.KubeAPIQPS, "kubeAPIBurst": kc.KubeAPIBurst,
		"registryPullQPS": *kc.RegistryPullQPS, "registryBurst": kc.RegistryBurst, "maxPods": kc.MaxPods, "podsPerCore": kc.PodsPerCore,
	}
	for path, n := range numbers {
		atLeast(v, path, n, 0)
	}
	atLeast(v, "maxOpenFiles", kc.MaxOpenFiles, 0)
	atLeast(v, "nodeStatusMaxImages", *kc.NodeStatusMaxImages, -1)
	atLeast(v, "nodeLeaseDurationSeconds", kc.NodeLeaseDurationSeconds, 1)
	within(v, "oomScoreAdj", *kc.OOMScoreAdj, -1000, 1000)
	within(v, "iptablesDropBit", *kc.IPTablesDropBit, 0, 31)
	within(v, "iptablesMasqueradeBit", *kc.IPTablesMasqueradeBit, 0, 31)
	slices.SortStableFunc(v.errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
}

func (v *validator) images() {
	kc := v.kc
	if n := kc.MaxParallelImagePulls; n != nil {
		atLeast(v, "maxParallelImagePulls", *n, 1)
		v.check(!*kc.SerializeImagePulls || *n <= 1, "maxParallelImagePulls", *n, "may not be larger than 1 while serializeImagePulls is true")
	}
	high, low := *kc.ImageGCHighThresholdPercent, *kc.ImageGCLowThresholdPercent
	within(v, "imageGCHighThresholdPercent", high, 0, 100)
	within(v, "imageGCLowThresholdPercent", low, 0, 100)
	v.check(low < high, "imageGCLowThresholdPercent", low, fmt.Sprintf("must be less than imageGCHighThresholdPercent, which is %d", high))
	oldest, youngest := kc.ImageMaximumGCAge.Duration, kc.ImageMinimumGCAge.Duration
	v.check(oldest <= 0 || oldest > youngest, "imageMaximumGCAge", oldest, fmt.Sprintf("must be more than imageMinimumGCAge, which is %v", youngest))
	if v.on("KubeletEnsureSecretPulledImages") {
		oneOf(v, "imagePullCredentialsVerificationPolicy", kc.ImagePullCredentialsVerificationPolicy, kubeletconfig.NeverVerify,
			kubeletconfig.NeverVerifyPreloadedImages, kubeletconfig.NeverVerifyAllowlistedImages, kubeletconfig.AlwaysVerify)
		v.check(len(kc.PreloadedImagesVerificationAllowlist) == 0 || kc.ImagePullCredentialsVerificationPolicy == kubeletconfig.NeverVerifyAllowlistedImages,
			"preloadedImagesVerificationAllowlist", kc.PreloadedImagesVerificationAllowlist, "needs imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages")
	}
}

func (v *validator) resources() {
	kc := v.kc
	oneOf(v, "cgroupDriver", kc.CgroupDriver, "cgroupfs", "systemd")
	for _, part := range strings.Split(kc.CgroupRoot, "/") {
		v.check(part != "..", "cgroupRoot", kc.CgroupRoot, "may not have \"..\"")
	}
	v.check(kc.SystemCgroups == "" || kc.CgroupRoot != "", "systemCgroups", kc.SystemCgroups, "needs cgroupRoot")
	within(v, "cpuCFSQuotaPeriod", kc.CPUCFSQuotaPeriod.Duration, time.Millisecond, time.Second)
	v.quantities("systemReserved", kc.SystemReserved)
	v.quantities("kubeReserved", kc.KubeReserved)
	oneOf(v, "memorySwap.swapBehavior", kc.MemorySwap.SwapBehavior, "", "NoSwap", "LimitedSwap")
	oneOf(v, "memoryReservationPolicy", kc.MemoryReservationPolicy, kubeletconfig.NoneMemoryReservationPolicy, kubeletconfig.TieredReservationMemoryReservationPolicy)
	if f := kc.MemoryThrottlingFactor; f != nil {
		v.check(*f > 0 && *f <= 1, "memoryThrottlingFactor", *f, "must be more than 0 and at most 1")
	}
}

// quantities are reserved amounts by resource name.
func (v *validator) quantities(path string, reserved map[string]string) {
	for name, text := range reserved {
		p := at(path).Key(name)
		if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, name) {
			v.errs = append(v.errs, field.NotSupported(p, name, []string{"cpu", "memory", "ephemeral-storage", "pid"}))
			continue
		}
		q, err := plain.Parse(text)
		if err != nil {
			v.errs = append(v.errs, field.Invalid(p, text, err.Error()))
		} else if q.Sign() < 0 {
			v.errs = append(v.errs, field.Invalid(p, text, "may not be negative"))
		}
	}
}

func (v *validator) enforcement() {
	const path = "enforceNodeAllocatable"
	seen := map[string]bool{}
	for _, what := range v.kc.EnforceNodeAllocatable {
		v.check(!seen[what], path, what, "is listed twice")
		seen[what] = true
		switch what {
		case "none":
			v.check(len(v.kc.EnforceNodeAllocatable) == 1, path, what, "may not stand beside others")
			continue
		case "pods":
		case "system-reserved", "system-reserved-compressible":
			v.check(v.kc.SystemReservedCgroup != "", path, what, "needs systemReservedCgroup")
		case "kube-reserved", "kube-reserved-compressible":
			v.check(v.kc.KubeReservedCgroup != "", path, what, "needs kubeReservedCgroup")
		default:
			oneOf(v, path, what, "none", "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible")
			continue
		}
		v.check(*v.kc.CgroupsPerQOS, path, what, "needs cgroupsPerQOS: true; without it, set enforceNodeAllocatable: [none]")
	}
	for _, who := range []string{"system-reserved", "kube-reserved"} {
		v.check(!seen[who] || !seen[who+"-compressible"], path, who, "may not stand beside "+who+"-compressible")
	}
}
