package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/config"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// setup writes files below a new directory and parses flags, in which DIR
// stands for that directory.
func setup(t *testing.T, files map[string]string, args ...string) (*config.Flags, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags := config.AddFlags(fs)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	require.NoError(t, fs.Parse(append([]string{"--hostname-override=Node-1 "}, args...)))
	return flags, dir
}

func load(t *testing.T, files map[string]string, args ...string) *config.Config {
	t.Helper()
	flags, _ := setup(t, files, args...)
	c, err := config.Load(flags)
	require.NoError(t, err)
	return c
}

func TestPrecedenceIsDefaultsFileDropInsFlags(t *testing.T) {
	files := map[string]string{
		"kubelet.yaml":     header + "maxPods: 10\npodsPerCore: 1\nhealthzPort: 1\nsyncFrequency: 5m\n",
		"conf.d/20-b.conf": header + "healthzPort: 3\n",
		"conf.d/10-a.conf": header + "healthzPort: 2\npodsPerCore: 2\nsyncFrequency: null\n",
		"conf.d/a/x.conf":  header + "podsPerCore: 3\n",
		"conf.d/README":    "not configuration",
	}
	c := load(t, files, "--config=DIR/kubelet.yaml", "--config-dir=DIR/conf.d", "--healthz_port=4")
	require.EqualValues(t, 10, c.Kubelet.MaxPods)
	require.EqualValues(t, 3, c.Kubelet.PodsPerCore, "sub-directories are walked in order")
	require.EqualValues(t, 4, *c.Kubelet.HealthzPort)
	require.Equal(t, time.Minute, c.Kubelet.SyncFrequency.Duration, "null in a drop-in removes")
	require.Equal(t, "node-1", c.NodeName)
	require.Len(t, c.Warnings, 1)
	require.Contains(t, c.Warnings[0], "README: is not a .conf file")

	origin, set := c.Explicit("maxPods")
	require.True(t, set)
	require.Contains(t, origin, "kubelet.yaml")
	origin, _ = c.Explicit("healthzPort")
	require.Equal(t, "--healthz-port", origin)
	origin, _ = c.Explicit("podsPerCore")
	require.Contains(t, origin, "x.conf")
	_, set = c.Explicit("registryBurst")
	require.False(t, set)
	_, set = c.Explicit("syncFrequency")
	require.False(t, set)
}

func TestWithoutAnyFileTheKubeletsDefaultsHold(t *testing.T) {
	c := load(t, nil)
	require.EqualValues(t, 110, c.Kubelet.MaxPods)
	require.Nil(t, c.Kubelet.EvictionHard, "eviction defaults come with a file only")
	require.Empty(t, c.Warnings)
	require.Empty(t, c.RuntimeEndpoint(), "the usual sockets are tried")
	require.Equal(t, "/var/lib/kubelet", c.RootDir)
}

func TestStrictness(t *testing.T) {
	tests := map[string]struct {
		file string
		warn []string
		err  []string
	}{
		"unknown field":           {header + "maxPod: 3\n", []string{`k.yaml: unknown field "maxPod"; it is ignored: is maxPods meant?`}, nil},
		"unknown nested field":    {header + "authentication: {webhook: {active: true}}\n", []string{`unknown field "authentication.webhook.active"`}, nil},
		"field in the wrong case": {header + "MaxPods: 3\n", []string{`unknown field "MaxPods"`}, nil},
		"duplicate field":         {header + "maxPods: 3\nmaxPods: 4\n", []string{`"maxPods" already set`}, nil},
		"known, no effect yet":    {header + "kernelMemcgNotification: true\n", []string{"k.yaml: kernelMemcgNotification is not supported yet"}, nil},
		"zero means not set":      {header + "streamingConnectionIdleTimeout: 0s\n", nil, nil},
		"supported":               {header + "maxPods: 3\ncgroupDriver: systemd\n", nil, nil},
		"empty":                   {" \n", nil, []string{"k.yaml: the file is empty"}},
		"no kind":                 {"maxPods: 3\n", nil, []string{"k.yaml", "must begin with apiVersion"}},
		"another kind":            {"apiVersion: v1\nkind: Pod\n", nil, []string{"k.yaml", "must begin with apiVersion"}},
		"another kubelet kind":    {"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: CredentialProviderConfig\n", nil, []string{"KubeletConfiguration is wanted"}},
		"no YAML":                 {header + "maxPods: [\n", nil, []string{"k.yaml", "line"}},
		"a list":                  {"- 1\n", nil, []string{"k.yaml"}},
		"two wrong types":         {header + "maxPods: many\nsyncFrequency: soon\n", nil, []string{"k.yaml: maxPods:", "k.yaml: syncFrequency:"}},
		"number out of range":     {header + "maxPods: 3000000000\n", nil, []string{"k.yaml: maxPods:"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			flags, _ := setup(t, map[string]string{"k.yaml": tt.file}, "--config=DIR/k.yaml")
			c, err := config.Load(flags)
			if tt.err != nil {
				require.Error(t, err)
				for _, part := range tt.err {
					require.ErrorContains(t, err, part)
				}
				return
			}
			require.NoError(t, err)
			require.Len(t, c.Warnings, len(tt.warn), c.Warnings)
			for i, part := range tt.warn {
				require.Contains(t, c.Warnings[i], part)
			}
		})
	}
}

func TestInvalidValuesAreAllReportedWithTheirPaths(t *testing.T) {
	tests := map[string]string{ // field → path in the error
		"port: 70000":                                       "port",
		"healthzPort: -1":                                   "healthzPort",
		"healthzBindAddress: localhost":                     "healthzBindAddress",
		"fileCheckFrequency: -1s":                           "fileCheckFrequency",
		"runtimeRequestTimeout: -1s":                        "runtimeRequestTimeout",
		"registryPullQPS: -1":                               "registryPullQPS",
		"maxPods: -1":                                       "maxPods",
		"maxParallelImagePulls: 0":                          "maxParallelImagePulls",
		"imageGCHighThresholdPercent: 101":                  "imageGCHighThresholdPercent",
		"imageGCLowThresholdPercent: 90":                    "imageGCLowThresholdPercent",
		"imageMaximumGCAge: 1m":                             "imageMaximumGCAge",
		"cgroupDriver: crio":                                "cgroupDriver",
		"cgroupRoot: /a/../b":                               "cgroupRoot",
		"cpuCFSQuotaPeriod: 2s":                             "cpuCFSQuotaPeriod",
		"systemReserved: {cpu: much}":                       "systemReserved[cpu]",
		"kubeReserved: {gpu: \"1\"}":                        "kubeReserved[gpu]",
		"enforceNodeAllocatable: [pod]":                     "enforceNodeAllocatable",
		"enforceNodeAllocatable: [none, pods]":              "enforceNodeAllocatable",
		"enforceNodeAllocatable: [kube-reserved]":           "enforceNodeAllocatable",
		"cgroupsPerQOS: false":                              "enforceNodeAllocatable",
		"clusterDNS: [a]":                                   "clusterDNS[0]",
		"clusterDomain: a b":                                "clusterDomain",
		"reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]": "reservedMemory[0].limits[cpu]",
		"logging: {flushFrequency: -1s}":                    "logging.flushFrequency",
		"logging: {vmodule: [{verbosity: 1}]}":              "logging.vmodule[0].filePattern",
		"featureGates: {DefaultPodSysctls: true}\ndefaultPodSysctls: {vm.swappiness: \"1\"}": "defaultPodSysctls[vm.swappiness]",
		"featureGates: {MemoryQoS: false}\nmemoryThrottlingFactor: 0.5":                      "memoryThrottlingFactor",
		"logging: {options: {text: {splitStream: true}}}":                                    "logging.options.text.splitStream",
		"crashLoopBackOff: {maxContainerRestartPeriod: 1h}":                                  "crashLoopBackOff.maxContainerRestartPeriod",
		"hairpinMode: x": "hairpinMode",
		"runOnce: true":  "runOnce",
		"registerWithTaints: [{key: a, effect: x}]": "registerWithTaints[0].effect",
		"userNamespaces: {idsPerPod: 65537}":        "userNamespaces.idsPerPod",
		"topologyManagerPolicy: x":                  "topologyManagerPolicy",
		"reservedSystemCPUs: a-b":                   "reservedSystemCPUs",
		"shutdownGracePeriod: 1ms":                  "shutdownGracePeriod",
		"shutdownGracePeriodCriticalPods: 10s":      "shutdownGracePeriodCriticalPods",
		"podLogsDir: /var/log/ü":                    "podLogsDir",
		"containerLogMaxFiles: 1":                   "containerLogMaxFiles",
		"containerLogMonitorInterval: 1s":           "containerLogMonitorInterval",
		"containerLogMaxSize: big":                  "containerLogMaxSize",
		"logging: {format: xml}":                    "logging.format",
		"tracing: {samplingRatePerMillion: -1}":     "tracing.samplingRatePerMillion",
		"memoryThrottlingFactor: 2":                 "memoryThrottlingFactor",
		"containerRuntimeEndpoint: tcp://a":         "containerRuntimeEndpoint",
		"defaultPodSysctls: {a: b}":                 "defaultPodSysctls",
		"featureGates: {NoSuchGate: true}":          "featureGates",
		"featureGates: {NodeSwap: false}":           "featureGates",
	}
	for text, path := range tests {
		t.Run(text, func(t *testing.T) {
			flags, dir := setup(t, map[string]string{"k.yaml": header + text + "\n"}, "--config=DIR/k.yaml")
			_, err := config.Load(flags)
			require.ErrorContains(t, err, path)
			if text != "cgroupsPerQOS: false" { // the field with the error is a default
				require.ErrorContains(t, err, dir+"/k.yaml: "+path)
			}
		})
	}
	t.Run("together", func(t *testing.T) {
		flags, _ := setup(t, nil, "--port=0", "--max-pods=-1", "--healthz-port=99999")
		_, err := config.Load(flags)
		for _, want := range []string{"--port: port", "--max-pods: maxPods", "--healthz-port: healthzPort"} {
			require.ErrorContains(t, err, want)
		}
	})
}

// What cannot be decoded, or is not one configuration, is told in the words of
// who wrote it.
func TestMistakesAreToldPlainly(t *testing.T) {
	for text, want := range map[string]string{
		header + "fileCheckFrequency: 20\n":                      "DIR/k.yaml: fileCheckFrequency: is a number, must be a duration with its unit, such as 90s",
		header + "fileCheckFrequency: -20s\n":                    `DIR/k.yaml: fileCheckFrequency: Invalid value: "-20s": must be 0s or more`,
		header + "clusterDNS: 10.96.0.10\n":                      "DIR/k.yaml: clusterDNS: is a string, must be a list of strings",
		header + "clusterDomain: 5\n":                            "DIR/k.yaml: clusterDomain: is a number, must be a string: put it in quotes",
		header + "maxPods: many\n":                               "DIR/k.yaml: maxPods: is a string, must be an integer",
		header + "featureGates: {MemoryQoS: on, Other: \"x\"}\n": "DIR/k.yaml: featureGates[Other]: is a string, must be true or false",
		header + "kubeReserved: {memory: 1GB}\n":                 `DIR/k.yaml: kubeReserved[memory]: Invalid value: "1GB": must be a number, alone or with`,
		header + "---\n" + header:                                "DIR/k.yaml: holds several YAML documents; one KubeletConfiguration is wanted",
		"apiVersion: v1\nkind: Pod\n":                            `DIR/k.yaml: apiVersion is "v1" and kind is "Pod"; it must begin with apiVersion: kubelet.config.k8s.io/v1beta1`,
		"maxPods: 1\n":                                           `DIR/k.yaml: apiVersion is "" and kind is ""; it must begin with`,
	} {
		t.Run(text, func(t *testing.T) {
			flags, dir := setup(t, map[string]string{"k.yaml": text}, "--config=DIR/k.yaml")
			_, err := config.Load(flags)
			require.ErrorContains(t, err, strings.ReplaceAll(want, "DIR", dir))
			require.NotContains(t, err.Error(), "json:")
		})
	}
	for _, text := range []string{"---\n" + header, header + "---\n", "# one\n---\n" + header + "---\n# no other\n"} {
		load(t, map[string]string{"k.yaml": text}, "--config=DIR/k.yaml")
	}
}

func TestRelativePathsStartAtTheFileThatSetsThem(t *testing.T) {
	flags, dir := setup(t, map[string]string{
		"etc/k.yaml":      header + "staticPodPath: manifests\n",
		"etc/d/10-a.conf": header + "podLogsDir: logs\n",
	}, "--config=DIR/etc/k.yaml", "--config-dir=DIR/etc/d", "--resolv-conf=resolv", "--root-dir=DIR/root/")
	c, err := config.Load(flags)
	require.NoError(t, err)
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, dir+"/etc/manifests", c.Kubelet.StaticPodPath)
	require.Equal(t, dir+"/etc/d/logs", c.Kubelet.PodLogsDir)
	require.Equal(t, wd+"/resolv", *c.Kubelet.ResolverConfig)
	require.Equal(t, dir+"/root", c.RootDir)
}

func TestFeatureGates(t *testing.T) {
	c := load(t, map[string]string{"k.yaml": header + "featureGates: {NodeSwap: true, EventedPLEG: true, MemoryQoS: false}\n"},
		"--config=DIR/k.yaml", "--feature-gates=MemoryQoS=true,AllAlpha=false")
	require.True(t, c.Gates.Enabled("EventedPLEG"))
	require.True(t, c.Gates.Enabled("MemoryQoS"), "the flag wins, key by key")
	require.Len(t, c.Warnings, 1, c.Warnings)
	require.Contains(t, c.Warnings[0], "featureGates.EventedPLEG=true has no effect")
}

func TestPullsFollowExplicitSettingsOnly(t *testing.T) {
	tests := []struct {
		text   string
		slots  int
		shared bool
		qps    int32
	}{
		{"", 5, false, 0},
		{"serializeImagePulls: true", 1, true, 0},
		{"serializeImagePulls: false", 5, false, 0},
		{"maxParallelImagePulls: 3", 3, true, 0},
		{"serializeImagePulls: false\nmaxParallelImagePulls: 7", 7, true, 0},
		{"registryPullQPS: 5", 5, false, 5},
		{"registryPullQPS: 0", 5, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			c := load(t, map[string]string{"k.yaml": header + tt.text + "\n"}, "--config=DIR/k.yaml")
			require.Equal(t, tt.slots, c.Policy["image"].Slots)
			require.Equal(t, tt.shared, c.SharedPullQueue())
			qps, _ := c.PullQPS()
			require.Equal(t, tt.qps, qps)
		})
	}
}

func TestCheckHost(t *testing.T) {
	c := load(t, nil)
	require.NoError(t, c.CheckHost(config.Host{CgroupV2: true}))
	err := c.CheckHost(config.Host{SwapOn: true})
	require.ErrorContains(t, err, "failCgroupV1: false")
	require.ErrorContains(t, err, "failSwapOn: false")
	c = load(t, nil, "--fail-cgroupv1=false", "--fail-swap-on=false")
	require.NoError(t, c.CheckHost(config.Host{SwapOn: true}))
}

func TestNodeNameMustBeAName(t *testing.T) {
	flags, _ := setup(t, nil, "--hostname-override=a_b")
	_, err := config.Load(flags)
	require.ErrorContains(t, err, `--hostname-override "a_b" is no node name`)
	require.NotContains(t, fmt.Sprint(err), "\n")
}

func TestPartsOfTheMachineThatAreLimited(t *testing.T) {
	c := load(t, nil, "--system-reserved=cpu=100m,memory=1Gi", "--kube-reserved=cpu=1,memory=2Gi",
		"--system-reserved-cgroup=/system.slice", "--kube-reserved-cgroup=/kube", "--enforce-node-allocatable=pods,system-reserved,kube-reserved-compressible")
	parts := c.EnforcedParts()
	require.Len(t, parts, 2)
	require.Equal(t, "/system.slice", parts[0].Cgroup)
	require.Equal(t, "1Gi", parts[0].Reserved.Memory().String())
	require.Equal(t, "/kube", parts[1].Cgroup)
	require.Equal(t, "1", parts[1].Reserved.Cpu().String())
	require.Len(t, parts[1].Reserved, 1, "only what can be squeezed")
	require.Empty(t, load(t, nil).EnforcedParts())
}

func TestReserved(t *testing.T) {
	c := load(t, nil, "--system-reserved=cpu=100m,pid=10", "--kube-reserved=cpu=1,memory=1Gi")
	r := c.Reserved()
	require.Equal(t, int64(1100), r.Cpu().MilliValue())
	require.Equal(t, int64(1<<30), r.Memory().Value())
	pids := r["pid"]
	require.Equal(t, int64(10), pids.Value())
	require.True(t, c.EnforcesPods())
	require.False(t, load(t, nil, "--enforce-node-allocatable=none").EnforcesPods())
}
