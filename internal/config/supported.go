package config

import "strings"

// The fields of KubeletConfiguration by what setting them does. Every field is
// in exactly one of the lists (a test checks it); supporting one more means to
// move it.
const (
	// fieldsActing have the effect that they have in the kubelet.
	fieldsActing = `
		staticPodPath fileCheckFrequency podLogsDir
		staticPodURL staticPodURLHeader httpCheckFrequency
		containerRuntimeEndpoint runtimeRequestTimeout
		healthzPort healthzBindAddress
		cgroupDriver cgroupRoot cgroupsPerQOS failCgroupV1 failSwapOn
		cpuCFSQuota cpuCFSQuotaPeriod podPidsLimit
		memorySwap.swapBehavior memoryThrottlingFactor memoryReservationPolicy
		userNamespaces.idsPerPod
		oomScoreAdj protectKernelDefaults singleProcessOOMKill allowedUnsafeSysctls
		systemReservedCgroup kubeReservedCgroup
		maxPods podsPerCore systemReserved kubeReserved enforceNodeAllocatable
		clusterDNS clusterDomain resolvConf
		serializeImagePulls maxParallelImagePulls registryPullQPS registryBurst
		crashLoopBackOff.maxContainerRestartPeriod
		containerLogMaxSize containerLogMaxFiles containerLogMaxWorkers containerLogMonitorInterval
		imageMinimumGCAge imageMaximumGCAge
		imageGCHighThresholdPercent imageGCLowThresholdPercent
		evictionHard evictionSoft evictionSoftGracePeriod
		evictionPressureTransitionPeriod evictionMaxPodGracePeriod
		evictionMinimumReclaim mergeDefaultEvictionSettings
		localStorageCapacityIsolation volumeStatsAggPeriod
		seccompDefault
		featureGates
		logging.format logging.verbosity
		tracing.endpoint tracing.samplingRatePerMillion`

	// fieldsInert are accepted in silence: the kubelet ignores them too, or
	// what they tune does not exist here.
	fieldsInert = `
		hairpinMode runOnce iptablesMasqueradeBit iptablesDropBit
		logging.flushFrequency
		syncFrequency`

	// fieldsNotYet get one warning each when they are set.
	fieldsNotYet = `
		enableServer imageServiceEndpoint
		address port readOnlyPort
		tlsCertFile tlsPrivateKeyFile tlsCipherSuites tlsCurvePreferences tlsMinVersion
		rotateCertificates serverTLSBootstrap
		authentication.x509.clientCAFile authentication.webhook.enabled
		authentication.webhook.cacheTTL authentication.anonymous.enabled
		authorization.mode authorization.webhook.cacheAuthorizedTTL
		authorization.webhook.cacheUnauthorizedTTL
		imagePullCredentialsVerificationPolicy preloadedImagesVerificationAllowlist
		eventRecordQPS eventBurst
		enableDebuggingHandlers enableContentionProfiling enableProfilingHandler
		enableDebugFlagsHandler enableSystemLogHandler enableSystemLogQuery
		streamingConnectionIdleTimeout
		nodeStatusUpdateFrequency nodeStatusReportFrequency nodeLeaseDurationSeconds
		nodeStatusMaxImages registerWithTaints registerNode providerID podCIDR
		kubeletCgroups systemCgroups
		cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod
		memoryManagerPolicy reservedMemory
		topologyManagerPolicy topologyManagerScope topologyManagerPolicyOptions
		qosReserved reservedSystemCPUs
		maxOpenFiles contentType kubeAPIQPS kubeAPIBurst
		kernelMemcgNotification
		enableControllerAttachDetach makeIPTablesUtilChains
		configMapAndSecretChangeDetectionStrategy
		showHiddenMetricsForVersion
		defaultPodSysctls volumePluginDir
		logging.vmodule
		logging.options.text.splitStream logging.options.text.infoBufferSize
		logging.options.json.splitStream logging.options.json.infoBufferSize
		shutdownGracePeriod shutdownGracePeriodCriticalPods
		shutdownGracePeriodByPodPriority`

	// pathFields name files; relative ones are resolved against the directory
	// of the file that sets them.
	pathFields = `
		staticPodPath authentication.x509.clientCAFile tlsCertFile
		tlsPrivateKeyFile resolvConf volumePluginDir podLogsDir`

	// gatesActing are the feature gates whose value changes what flowlet does.
	gatesActing = `
		KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages CustomCPUCFSQuotaPeriod MemoryQoS
		ContainerStopSignals EnvFiles`
)

func fieldSet(list string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		out[name] = true
	}
	return out
}
