package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/manifest"
)

// full is a manifest with a little of everything; the cases below break one
// line of it. That verdicts are those of Kubernetes in general is tested in
// test/oracle, against Kubernetes.
const full = `apiVersion: v1
kind: Pod
metadata: {name: full}
spec:
  restartPolicy: OnFailure
  os: {name: linux}
  dnsPolicy: None
  dnsConfig: {nameservers: [10.0.0.1]}
  securityContext:
    sysctls: [{name: net.core.somaxconn, value: "1"}]
  initContainers:
  - {name: init, image: i}
  containers:
  - name: app
    image: app
    ports: [{name: http, containerPort: 80, hostPort: 8080}]
    env:
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    lifecycle: {preStop: {sleep: {seconds: 5}}, stopSignal: SIGRTMIN+3}
    livenessProbe: {httpGet: {port: http}}
    readinessProbe: {exec: {command: [ready]}}
    resources: {limits: {cpu: 1, memory: 1Gi}}
    securityContext: {privileged: false}
    volumeMounts:
    - {name: data, mountPath: /data, subPath: a}
  volumes:
  - {name: data, hostPath: {path: /data, type: Directory}}
  - {name: info, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
  tolerations: [{operator: Exists}]
`

func TestValidate(t *testing.T) {
	_, err := manifest.Load("full.yaml", []byte(full), origin())
	require.NoError(t, err)

	cases := map[string]struct{ old, new, want string }{
		"container name twice":     {"{name: init, image: i}", "{name: app, image: i}", `spec.initContainers[0].name: Duplicate value: "app"`},
		"container name":           {"name: app\n", "name: App\n", "14: spec.containers[0].name: Invalid value"},
		"image missing":            {"    image: app\n", "", "14: spec.containers[0].image: Required value"},
		"restart policy":           {"restartPolicy: OnFailure", "restartPolicy: Maybe", `5: spec.restartPolicy: Unsupported value: "Maybe"`},
		"port number":              {"containerPort: 80,", "containerPort: 80000,", "spec.containers[0].ports[0].containerPort"},
		"host port twice":          {"hostPort: 8080}", "hostPort: 8080}, {containerPort: 81, hostPort: 8080}", "spec.containers[0].ports[1].hostPort: Duplicate value"},
		"host network port":        {"restartPolicy:", "hostNetwork: true\n  restartPolicy:", "must match `containerPort`"},
		"sysctl of the host":       {"restartPolicy:", "hostNetwork: true\n  restartPolicy:", "spec.securityContext.sysctls[0].name: Invalid value: \"net.core.somaxconn\""},
		"env field":                {"fieldPath: spec.nodeName", "fieldPath: spec.secret", "18: spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value"},
		"no handler":               {"{httpGet: {port: http}}", "{periodSeconds: 3}", "spec.containers[0].livenessProbe: Required value: must specify a handler type"},
		"two handlers":             {"{httpGet: {port: http}}", "{httpGet: {port: http}, tcpSocket: {port: 1}}", "livenessProbe.tcpSocket: Forbidden"},
		"probe threshold":          {"{httpGet: {port: http}}", "{httpGet: {port: http}, successThreshold: 2}", "livenessProbe.successThreshold: Invalid value: 2: must be 1"},
		"sleep beyond grace":       {"seconds: 5", "seconds: 50", "preStop.sleep: Invalid value: 50"},
		"stop signal":              {"SIGRTMIN+3", "SIGRTMIN+16", "stopSignal: Invalid value"},
		"stop signal of no system": {"  os: {name: linux}\n", "", "stopSignal: Forbidden"},
		"request above limit":      {"{limits: {cpu: 1,", "{requests: {cpu: 2}, limits: {cpu: 1,", "must be less than or equal to cpu limit of 1"},
		"negative limit":           {"memory: 1Gi", "memory: -1", "resources.limits[memory]: Invalid value"},
		"unknown resource":         {"memory: 1Gi", "storage: 1Gi", "resources.limits[storage]: Invalid value"},
		"no such volume":           {"{name: data, mountPath", "{name: other, mountPath", `25: spec.containers[0].volumeMounts[0].name: Not found: "other"`},
		"sub-path climbs":          {"subPath: a", "subPath: a/../..", "subPath: Invalid value: \"a/../..\": must not contain '..'"},
		"host path climbs":         {"path: /data, type", "path: /data/../etc, type", "27: spec.volumes[0].hostPath.path"},
		"host path type":           {"type: Directory", "type: Folder", "hostPath.type: Unsupported value"},
		"volume of two types":      {"hostPath: {path: /data, type: Directory}", "hostPath: {path: /data}, emptyDir: {}", "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"},
		"volume name twice":        {"{name: info, downwardAPI", "{name: data, downwardAPI", `spec.volumes[1].name: Duplicate value: "data"`},
		"privileged without":       {"{privileged: false}", "{privileged: true, allowPrivilegeEscalation: false}", "cannot set `allowPrivilegeEscalation` to false"},
		"nameserver missing":       {"{nameservers: [10.0.0.1]}", "{}", "spec.dnsConfig.nameservers: Required value"},
		"nameserver":               {"[10.0.0.1]", "[here]", "spec.dnsConfig.nameservers[0]: Invalid value"},
		"toleration":               {"[{operator: Exists}]", "[{operator: Equal}]", "spec.tolerations[0].operator"},
		"ephemeral containers":     {"  tolerations:", "  ephemeralContainers: [{name: e, image: e}]\n  tolerations:", "spec.ephemeralContainers: Forbidden"},
		"both namespaces":          {"restartPolicy:", "hostPID: true\n  shareProcessNamespace: true\n  restartPolicy:", "spec.shareProcessNamespace"},
		"user namespace":           {"restartPolicy:", "hostPID: true\n  hostUsers: false\n  restartPolicy:", "spec.hostPID: Forbidden: when `hostUsers` is false"},
		"probe on init container":  {"{name: init, image: i}", "{name: init, image: i, livenessProbe: {exec: {command: [x]}}}", "spec.initContainers[0].livenessProbe: Forbidden"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(full, c.old), "the case has to change exactly one place")
			_, err := manifest.Load("full.yaml", []byte(strings.Replace(full, c.old, c.new, 1)), origin())
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestStaticPodsReferenceNoObjects(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
	container := "  containers:\n  - name: c\n    image: i\n"
	cases := map[string]struct{ data, want string }{
		"service account":    {pod + "  serviceAccountName: a\n" + container, "5: spec.serviceAccountName: Forbidden: static pods may not reference serviceaccounts"},
		"pull secret":        {pod + "  imagePullSecrets: [{name: a}]\n" + container, "static pods may not reference secrets"},
		"claim":              {pod + container + "  volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]\n", "static pods may not reference persistentvolumeclaims"},
		"config map":         {pod + container + "  volumes: [{name: v, configMap: {name: a}}]\n", "static pods may not reference configmaps (via configmap volumes)"},
		"csi":                {pod + container + "  volumes: [{name: v, csi: {driver: a}}]\n", "static pods may not reference csidrivers (via CSI volumes)"},
		"projected token":    {pod + container + "  volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: a}}]}}]\n", "static pods may not reference serviceaccounts (via projected volumes)"},
		"resource claim":     {pod + "  resourceClaims: [{name: a, resourceClaimName: b}]\n" + container, "static pods may not reference resourceclaims"},
		"old account":        {pod + "  serviceAccount: a\n" + container, "static pods may not reference serviceaccounts"},
		"secret":             {pod + container + "  volumes: [{name: v, secret: {secretName: a}}]\n", "static pods may not reference secrets (via secret volumes)"},
		"endpoints":          {pod + container + "  volumes: [{name: v, glusterfs: {endpoints: a, path: b}}]\n", "static pods may not reference endpoints (via glusterFS volumes)"},
		"claim of its own":   {pod + container + "  volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}]\n", "static pods may not reference persistentvolumeclaims (via ephemeral volumes)"},
		"azure":              {pod + container + "  volumes: [{name: v, azureFile: {secretName: a, shareName: b}}]\n", "static pods may not reference secrets (via azureFile volumes)"},
		"projected secret":   {pod + container + "  volumes: [{name: v, projected: {sources: [{secret: {name: a}}]}}]\n", "static pods may not reference secrets (via projected volumes)"},
		"projected map":      {pod + container + "  volumes: [{name: v, projected: {sources: [{configMap: {name: a}}]}}]\n", "static pods may not reference configmaps (via projected volumes)"},
		"projected bundle":   {pod + container + "  volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: a, path: b}}]}}]\n", "static pods may not reference clustertrustbundles"},
		"projected pair":     {pod + container + "  volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: a, keyType: b}}]}}]\n", "static pods may not reference podcertificates"},
		"env of a secret":    {pod + container + "    env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: a}}}]\n", "static pods may not reference secrets"},
		"ephemeral":          {pod + container + "  ephemeralContainers: [{name: e, image: i}]\n", "spec.ephemeralContainers"},
		"env from secret":    {pod + container + "    envFrom: [{secretRef: {name: a}}]\n", "spec.containers[0].envFrom[0].secretRef: Forbidden: static pods may not reference secrets"},
		"env of a configmap": {pod + container + "    env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: a}}}]\n", "static pods may not reference configmaps"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Load("p.yaml", []byte(c.data), origin())
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What only schedulers, controllers and other systems read is no business of a
// node, and no reason to refuse a pod.
func TestFieldsForOthersAreKept(t *testing.T) {
	p := load(t, `apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  automountServiceAccountToken: false
  preemptionPolicy: Never
  priorityClassName: system-node-critical
  priority: 2000001000
  schedulerName: mine
  securityContext: {windowsOptions: {runAsUserName: a}}
  affinity:
    podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {a: b}}}]}
    podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}
    nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
  evictionResponders: [{name: example.com/a}]
  schedulingGroup: {podGroupName: a}
  containers: [{name: c, image: i}]
`, origin()).Pod
	s := p.Spec
	require.False(t, *s.AutomountServiceAccountToken)
	require.Equal(t, v1.PreemptNever, *s.PreemptionPolicy)
	require.Equal(t, "mine", s.SchedulerName)
	require.Len(t, s.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, 1)
	require.Len(t, s.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, 1)
	require.Len(t, s.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, 1)
	require.Len(t, s.TopologySpreadConstraints, 1)
	require.Len(t, s.EvictionResponders, 1)
	require.Equal(t, "a", *s.SchedulingGroup.PodGroupName)
}

func TestGatesAreForPodsWithoutANode(t *testing.T) {
	_, err := manifest.Load("p.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  schedulingGates: [{name: example.com/g}]\n  containers: [{name: c, image: i}]\n"), origin())
	require.ErrorContains(t, err, "5: spec.schedulingGates: Forbidden: a pod that has its node may not wait for gates")
}

func TestLoadAllTakesListsWholeOrNotAtAll(t *testing.T) {
	item := func(name string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	}
	list := func(items ...string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"PodList","items":[` + strings.Join(items, ",") + `]}`)
	}
	pods, err := manifest.LoadAll("http://x", list(item("a"), item("b")), origin())
	require.NoError(t, err)
	require.Len(t, pods, 2)
	require.Equal(t, "b-node-1", pods[1].Pod.Name)
	require.NotEqual(t, pods[0].Pod.UID, pods[1].Pod.UID)

	_, err = manifest.LoadAll("http://x", list(item("a"), item("")), origin())
	require.ErrorContains(t, err, "http://x: items[1]: metadata.name missing")

	pods, err = manifest.LoadAll("http://x", list(), origin())
	require.NoError(t, err)
	require.Empty(t, pods)

	pods, err = manifest.LoadAll("http://x", []byte(web), origin())
	require.NoError(t, err)
	require.Len(t, pods, 1)
}

func TestOddPrioritiesAreWarnings(t *testing.T) {
	for spec, want := range map[string]string{
		"  priorityClassName: system-node-critical\n": "has no effect on the node",
		"  priority: 5\n": "without spec.priorityClassName",
		"  priority: 5\n  priorityClassName: mine\n":                          "evicted in vain",
		"  priority: 2000001000\n  priorityClassName: system-node-critical\n": "",
	} {
		warnings := load(t, web+spec, origin()).Warnings
		if want == "" {
			require.Empty(t, warnings)
			continue
		}
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0].String(), want)
		require.Equal(t, 13, warnings[0].Line)
	}
}
