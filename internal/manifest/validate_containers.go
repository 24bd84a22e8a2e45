package manifest

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containers checks both lists. A name is used once in a pod.
func (v *validator) containers(spec *field.Path) {
	at := spec.Child("containers")
	v.require(len(v.spec.Containers) > 0, at, "")
	names := map[string]bool{}
	hostPorts := map[string]bool{}
	for i := range v.spec.Containers {
		c, at := &v.spec.Containers[i], at.Index(i)
		v.unique(at.Child("name"), c.Name, names)
		v.container(c, at)
		v.running(c, at)
		v.restartRules(c, at)
		v.hostPorts(c, at, hostPorts)
		v.hostNetworkPorts(c, at)
	}
	at = spec.Child("initContainers")
	for i := range v.spec.InitContainers {
		c, at := &v.spec.InitContainers[i], at.Index(i)
		v.unique(at.Child("name"), c.Name, names)
		v.container(c, at)
		v.initContainer(c, at)
		v.hostPorts(c, at, map[string]bool{}) // one at a time: they may share
	}
}

// unique reports a value that was seen before; the empty value is reported
// elsewhere.
func (v *validator) unique(at *field.Path, value string, seen map[string]bool) {
	if value == "" {
		return
	}
	if seen[value] {
		v.add(field.Duplicate(at, value))
	}
	seen[value] = true
}

// container checks what init and app containers have in common.
func (v *validator) container(c *v1.Container, at *field.Path) {
	v.label(at.Child("name"), c.Name)
	if v.require(c.Image != "", at.Child("image"), "") && c.Image != strings.TrimSpace(c.Image) {
		v.invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace")
	}
	oneOf(v, at.Child("imagePullPolicy"), c.ImagePullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)
	oneOf(v, at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)
	v.ports(c.Ports, at.Child("ports"))
	v.env(c.Env, at.Child("env"))
	v.envFrom(c.EnvFrom, at.Child("envFrom"))
	v.mounts(c, at.Child("volumeMounts"))
	v.devices(c, at.Child("volumeDevices"))
	v.resources(&c.Resources, at.Child("resources"), containerResourceName)
	v.resizePolicy(c.ResizePolicy, at.Child("resizePolicy"))
	v.containerSecurity(c, at.Child("securityContext"))
}

// running checks what only a container that stays has: probes and hooks.
func (v *validator) running(c *v1.Container, at *field.Path) {
	v.lifecycle(c.Lifecycle, at.Child("lifecycle"))
	v.probe(c.LivenessProbe, at.Child("livenessProbe"))
	v.probe(c.ReadinessProbe, at.Child("readinessProbe"))
	v.probe(c.StartupProbe, at.Child("startupProbe"))
	for child, probe := range map[string]*v1.Probe{"livenessProbe": c.LivenessProbe, "startupProbe": c.StartupProbe} {
		if probe != nil && probe.SuccessThreshold != 1 {
			v.invalid(at.Child(child, "successThreshold"), probe.SuccessThreshold, "must be 1")
		}
	}
	if r := c.ReadinessProbe; r != nil && r.TerminationGracePeriodSeconds != nil {
		v.invalid(at.Child("readinessProbe", "terminationGracePeriodSeconds"), *r.TerminationGracePeriodSeconds,
			"must not be set for readinessProbes")
	}
}

func (v *validator) initContainer(c *v1.Container, at *field.Path) {
	v.restartRules(c, at)
	if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
		v.running(c, at)
		return
	}
	const only = "may not be set for init containers without restartPolicy=Always"
	v.forbid(c.Lifecycle != nil, at.Child("lifecycle"), only)
	v.forbid(c.LivenessProbe != nil, at.Child("livenessProbe"), only)
	v.forbid(c.ReadinessProbe != nil, at.Child("readinessProbe"), only)
	v.forbid(c.StartupProbe != nil, at.Child("startupProbe"), only)
	for i, p := range c.ResizePolicy {
		if p.RestartPolicy == v1.RestartContainer {
			v.invalid(at.Child("resizePolicy").Index(i).Child("restartPolicy"), p.RestartPolicy,
				"must not be RestartContainer for an init container that ends")
		}
	}
}

// The most restart rules, and exit codes in one rule, that the API takes.
const (
	maxRestartRules = 20
	maxExitCodes    = 255
)

func (v *validator) restartRules(c *v1.Container, at *field.Path) {
	policyAt, rulesAt := at.Child("restartPolicy"), at.Child("restartPolicyRules")
	if c.RestartPolicy != nil {
		allowed := []v1.ContainerRestartPolicy{v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyNever, v1.ContainerRestartPolicyOnFailure}
		if !slices.Contains(allowed, *c.RestartPolicy) {
			v.add(field.NotSupported(policyAt, *c.RestartPolicy, allowed))
		}
	} else if len(c.RestartPolicyRules) > 0 {
		v.add(field.Required(policyAt, "must specify restartPolicy when restart rules are used"))
	}
	if n := len(c.RestartPolicyRules); n > maxRestartRules {
		v.add(field.TooMany(rulesAt, n, maxRestartRules))
	}
	for i, rule := range c.RestartPolicyRules {
		v.restartRule(rule, rulesAt.Index(i))
	}
}

func (v *validator) restartRule(rule v1.ContainerRestartRule, at *field.Path) {
	actions := []v1.ContainerRestartRuleAction{v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers}
	if !slices.Contains(actions, rule.Action) {
		v.add(field.NotSupported(at.Child("action"), rule.Action, actions))
	}
	if !v.require(rule.ExitCodes != nil, at.Child("exitCodes"), "must be specified") {
		return
	}
	operators := []v1.ContainerRestartRuleOnExitCodesOperator{v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn}
	if !slices.Contains(operators, rule.ExitCodes.Operator) {
		v.add(field.NotSupported(at.Child("exitCodes", "operator"), rule.ExitCodes.Operator, operators))
	}
	if n := len(rule.ExitCodes.Values); n > maxExitCodes {
		v.add(field.TooMany(at.Child("exitCodes", "values"), n, maxExitCodes))
	}
}

func (v *validator) resizePolicy(policies []v1.ContainerResizePolicy, at *field.Path) {
	seen := map[string]bool{}
	for i, p := range policies {
		v.unique(at.Index(i), string(p.ResourceName), seen)
		oneOf(v, at, p.ResourceName, v1.ResourceCPU, v1.ResourceMemory)
		oneOf(v, at, p.RestartPolicy, v1.NotRequired, v1.RestartContainer)
		if v.spec.RestartPolicy == v1.RestartPolicyNever && p.RestartPolicy != v1.NotRequired {
			v.invalid(at, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

func (v *validator) ports(ports []v1.ContainerPort, at *field.Path) {
	names := map[string]bool{}
	for i, p := range ports {
		at := at.Index(i)
		if msgs := validation.IsValidPortName(p.Name); p.Name != "" && len(msgs) > 0 {
			v.invalid(at.Child("name"), p.Name, msgs...)
		} else {
			v.unique(at.Child("name"), p.Name, names)
		}
		if v.require(p.ContainerPort != 0, at.Child("containerPort"), "") {
			v.invalid(at.Child("containerPort"), p.ContainerPort, validation.IsValidPortNum(int(p.ContainerPort))...)
		}
		if p.HostPort != 0 {
			v.invalid(at.Child("hostPort"), p.HostPort, validation.IsValidPortNum(int(p.HostPort))...)
		}
		oneOf(v, at.Child("protocol"), p.Protocol, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP)
	}
}

// hostPorts reports a port of the host that the same pod already has.
func (v *validator) hostPorts(c *v1.Container, at *field.Path, taken map[string]bool) {
	for i, p := range c.Ports {
		if p.HostPort != 0 {
			v.unique(at.Child("ports").Index(i).Child("hostPort"), fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort), taken)
		}
	}
}

func (v *validator) hostNetworkPorts(c *v1.Container, at *field.Path) {
	for i, p := range c.Ports {
		if v.spec.HostNetwork && p.HostPort != p.ContainerPort {
			v.invalid(at.Child("ports").Index(i).Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true")
		}
	}
}
