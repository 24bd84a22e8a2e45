package pod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

func TestRestarts(t *testing.T) {
	ok := pod.Container{State: pod.Exited, Detailed: true}
	failed := pod.Container{State: pod.Exited, Detailed: true, Exit: pod.Exit{Code: 1}}
	oom := pod.Container{State: pod.Exited, Detailed: true, Exit: pod.Exit{Reason: "OOMKilled"}}
	lost := pod.Container{State: pod.Running, Gone: true}
	always := v1.ContainerRestartPolicyAlways
	never := v1.ContainerRestartPolicyNever
	for name, tc := range map[string]struct {
		policy v1.RestartPolicy
		own    *v1.ContainerRestartPolicy
		init   bool
		ended  pod.Container
		want   bool
	}{
		"always, exit 0":             {v1.RestartPolicyAlways, nil, false, ok, true},
		"on failure, exit 0":         {v1.RestartPolicyOnFailure, nil, false, ok, false},
		"on failure, exit 1":         {v1.RestartPolicyOnFailure, nil, false, failed, true},
		"on failure, out of memory":  {v1.RestartPolicyOnFailure, nil, false, oom, true},
		"on failure, lost":           {v1.RestartPolicyOnFailure, nil, false, lost, true},
		"never, exit 1":              {v1.RestartPolicyNever, nil, false, failed, false},
		"init of always, exit 0":     {v1.RestartPolicyAlways, nil, true, ok, false},
		"init of always, exit 1":     {v1.RestartPolicyAlways, nil, true, failed, true},
		"init of never, exit 1":      {v1.RestartPolicyNever, nil, true, failed, false},
		"sidecar of never, exit 0":   {v1.RestartPolicyNever, &always, true, ok, true},
		"own policy beats the pod's": {v1.RestartPolicyAlways, &never, false, failed, false},
		"own policy always in never": {v1.RestartPolicyNever, &always, false, ok, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(func(p *v1.Pod) { p.Spec.RestartPolicy = tc.policy })
			require.Equal(t, tc.want, pod.Restarts(p, &v1.Container{RestartPolicy: tc.own}, tc.init, tc.ended))
		})
	}
}

func TestRestartRulesByExitCode(t *testing.T) {
	never := v1.ContainerRestartPolicyNever
	rule := func(op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{
			Action:    v1.ContainerRestartRuleActionRestart,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
		}
	}
	exit := func(code int32) pod.Container {
		return pod.Container{State: pod.Exited, Detailed: true, Exit: pod.Exit{Code: code}}
	}
	for name, tc := range map[string]struct {
		rule  v1.ContainerRestartRule
		ended pod.Container
		want  bool
	}{
		"in":                 {rule("In", 42, 43), exit(43), true},
		"not in the list":    {rule("In", 42), exit(1), false},
		"not in":             {rule("NotIn", 0), exit(1), true},
		"but it is":          {rule("NotIn", 1), exit(1), false},
		"lost has no code":   {rule("In", 0), pod.Container{State: pod.Running, Gone: true}, false},
		"unclear, no detail": {rule("In", 0), pod.Container{State: pod.Exited, Gone: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1.Container{RestartPolicy: &never, RestartPolicyRules: []v1.ContainerRestartRule{tc.rule}}
			require.Equal(t, tc.want, pod.Restarts(newPod(), c, false, tc.ended))
		})
	}
}

func TestComplete(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	policy := func(rp v1.RestartPolicy) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.RestartPolicy = rp } }
	inits := func(cs ...v1.Container) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.InitContainers = cs } }
	ready := pod.Sandbox{ID: "s", Ready: true}
	dead := pod.Sandbox{ID: "s"}
	c := func(name string, state pod.ContainerState, code int32) pod.Container {
		return pod.Container{ID: name, Name: name, SandboxID: "s", State: state, Detailed: true, Exit: pod.Exit{Code: code}}
	}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		sb   pod.Sandbox
		cs   []pod.Container
		want bool
	}{
		"always, exited":                    {newPod(), ready, []pod.Container{c("web", pod.Exited, 0)}, false},
		"never, exited":                     {newPod(policy(v1.RestartPolicyNever)), ready, []pod.Container{c("web", pod.Exited, 1)}, true},
		"never, running":                    {newPod(policy(v1.RestartPolicyNever)), ready, []pod.Container{c("web", pod.Running, 0)}, false},
		"never, created":                    {newPod(policy(v1.RestartPolicyNever)), ready, []pod.Container{c("web", pod.Created, 0)}, false},
		"never, nothing made yet":           {newPod(policy(v1.RestartPolicyNever)), dead, nil, false},
		"never, sandbox died under it":      {newPod(policy(v1.RestartPolicyNever)), dead, []pod.Container{c("web", pod.Created, 0)}, true},
		"on failure, sandbox died under it": {newPod(policy(v1.RestartPolicyOnFailure)), dead, []pod.Container{c("web", pod.Created, 0)}, false},
		"on failure, exit 0":                {newPod(policy(v1.RestartPolicyOnFailure)), ready, []pod.Container{c("web", pod.Exited, 0)}, true},
		"on failure, exit 1":                {newPod(policy(v1.RestartPolicyOnFailure)), ready, []pod.Container{c("web", pod.Exited, 1)}, false},
		"never, init failed": {
			newPod(policy(v1.RestartPolicyNever), inits(v1.Container{Name: "i"})), ready, []pod.Container{c("i", pod.Exited, 1)}, true,
		},
		"always, init failed": {newPod(inits(v1.Container{Name: "i"})), ready, []pod.Container{c("i", pod.Exited, 1)}, false},
		"never, sidecar runs on": {
			newPod(policy(v1.RestartPolicyNever), inits(v1.Container{Name: "i", RestartPolicy: &always})), ready,
			[]pod.Container{c("i", pod.Running, 0), c("web", pod.Exited, 0)},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fold(nil, spec(tc.pod), pod.Observed{Began: at(1), Sandboxes: []pod.Sandbox{tc.sb}, Containers: tc.cs})
			require.Equal(t, tc.want, pod.Complete(s))
		})
	}
}
