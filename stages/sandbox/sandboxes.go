package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Reasons of failed stages, as the kubelet words them.
const (
	reasonConfig = "ConfigPodSandboxError"
	reasonCreate = "CreatePodSandboxError"
	reasonKill   = "KillPodSandboxError"
)

// Runtime is what this package needs of the runtime's sandboxes. It is called
// concurrently.
type Runtime interface {
	Maker
	Ender
}

// Maker makes sandboxes and reads them.
type Maker interface {
	// RunPodSandbox is not idempotent: the name of a sandbox (name, namespace,
	// UID, attempt) can be taken once.
	RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (id string, err error)
	PodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error)
}

// Ender stops and removes sandboxes; an unknown ID is success.
type Ender interface {
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
}

// Settings are what the node's configuration says about sandboxes.
type Settings struct {
	LogRoot       string        // podLogsDir; default /var/log/pods
	ClusterDNS    []string      // clusterDNS
	ClusterDomain string        // clusterDomain
	ResolvConf    string        // path of the node's resolv.conf; empty: the node has none
	NodeIPs       []string      // primary first
	Period        time.Duration // cpuCFSQuotaPeriod; 0: CPU limits are not enforced
	// CgroupParent names a pod's cgroup as the runtime's driver spells it; nil:
	// the runtime chooses.
	CgroupParent func(p *v1.Pod) string
	// Handler returns the runtime handler of a pod's class; nil: always the
	// runtime's default.
	Handler func(p *v1.Pod) (string, error)
	// Features returns what the runtime handler of a pod can do; nil: nothing
	// but the usual.
	Features func(p *v1.Pod) pod.HandlerFeatures
	// Users gives pods IDs for a user namespace of their own; nil: they get none.
	Users *UserNamespaces
}

// Sandboxes makes, stops and removes sandboxes. Its methods may be called concurrently.
type Sandboxes struct {
	runtime  Runtime
	events   pod.Recorder
	settings Settings
}

// New returns Sandboxes over a runtime.
func New(runtime Runtime, events pod.Recorder, settings Settings) *Sandboxes {
	if settings.LogRoot == "" {
		settings.LogRoot = "/var/log/pods"
	}
	return &Sandboxes{runtime, events, settings}
}

// Config returns the request for a sandbox of s; see the function Config. It
// reads the node's resolv.conf.
func (b *Sandboxes) Config(s *pod.State, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	config, _, err := b.config(s, attempt, b.find)
	return config, err
}

// find returns the IDs that a pod has been given.
func (b *Sandboxes) find(p *v1.Pod) (*runtimeapi.UserNamespace, error) {
	if b.settings.Users == nil {
		return nil, nil
	}
	return b.settings.Users.Find(p.UID)
}

// give gives a pod the IDs of its user namespace.
func (b *Sandboxes) give(p *v1.Pod) (*runtimeapi.UserNamespace, error) {
	if b.settings.Features == nil || !b.settings.Features(p).UserNamespaces {
		return nil, errors.New("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
	}
	if b.settings.Users == nil {
		return nil, nil // a simulated node
	}
	return b.settings.Users.Allocate(p.UID)
}

// config is Config that also returns what there is to warn about. users
// returns the IDs of a user namespace of the pod's own.
func (b *Sandboxes) config(s *pod.State, attempt uint32, users func(*v1.Pod) (*runtimeapi.UserNamespace, error)) (*runtimeapi.PodSandboxConfig, []Warning, error) {
	o, err := b.options(s.Pod())
	if err != nil {
		return nil, nil, pod.WithReason(reasonConfig, err)
	}
	if crifact.OwnUsers(s.Pod()) {
		if o.Users, err = users(s.Pod()); err != nil {
			return nil, nil, pod.WithReason(reasonConfig, err)
		}
	}
	config, err := Config(s, attempt, o)
	if err != nil {
		return nil, nil, dag.Terminal(pod.WithReason(reasonConfig, err))
	}
	_, warnings := o.DNS.For(s.Pod())
	return config, warnings, nil
}

func (b *Sandboxes) options(p *v1.Pod) (Options, error) {
	o := Options{
		LogRoot: b.settings.LogRoot,
		Period:  b.settings.Period,
		DNS:     DNS{ClusterServers: b.settings.ClusterDNS, ClusterDomain: b.settings.ClusterDomain, NodeIPs: b.settings.NodeIPs},
	}
	if b.settings.CgroupParent != nil {
		o.CgroupParent = b.settings.CgroupParent(p)
	}
	if b.settings.ResolvConf == "" {
		return o, nil
	}
	text, err := os.ReadFile(b.settings.ResolvConf)
	if err != nil {
		return o, fmt.Errorf("reading the node's DNS settings (resolvConf): %w", err)
	}
	if o.DNS.Host, err = ParseResolvConf(string(text)); err != nil {
		return o, fmt.Errorf("reading the node's DNS settings (resolvConf) %s: %w", b.settings.ResolvConf, err)
	}
	return o, nil
}

// Create makes a sandbox of s and reads its status, two calls in all. It
// returns the sandbox as a fact also when its status could not be read; the
// error is then an uncertain one.
func (b *Sandboxes) Create(ctx context.Context, s *pod.State, attempt uint32) (pod.Facts, error) {
	id, err := b.run(ctx, s, attempt)
	if err != nil {
		b.warn(s, "FailedCreatePodSandBox", "Failed to create pod sandbox: "+err.Error())
		return nil, err
	}
	st, err := b.runtime.PodSandboxStatus(ctx, id)
	made := pod.Observed{Ended: time.Now(), Identity: s.Identity, Partial: true}
	if err != nil {
		b.warn(s, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: "+err.Error())
		made.Sandboxes = []pod.Sandbox{{ID: id, Attempt: attempt, CreatedAt: time.Now(), Ready: true}}
		err = crifact.Written(fmt.Errorf("reading the sandbox just made: %w", err), true)
		return pod.Facts{made}, pod.WithReason(reasonCreate, retried(err))
	}
	made.Sandboxes = []pod.Sandbox{crifact.SandboxStatus(st)}
	return pod.Facts{made}, nil
}

func (b *Sandboxes) run(ctx context.Context, s *pod.State, attempt uint32) (id string, err error) {
	config, warnings, err := b.config(s, attempt, b.give)
	if err != nil {
		return "", err
	}
	handler := ""
	if b.settings.Handler != nil {
		if handler, err = b.settings.Handler(s.Pod()); err != nil {
			return "", pod.WithReason(reasonConfig, fmt.Errorf("looking for the runtime handler of the pod: %w", err))
		}
	}
	for _, w := range warnings {
		b.warn(s, w.Reason, w.Message)
	}
	if id, err = b.runtime.RunPodSandbox(ctx, config, handler); err != nil {
		return "", pod.WithReason(reasonCreate, retried(crifact.Written(err, crifact.Uncertain(err))))
	}
	return id, nil
}

// warn records an event about the pod, unless nobody wants it any longer.
func (b *Sandboxes) warn(s *pod.State, reason, message string) {
	if s.Removal == nil {
		b.events.Event(s.Pod(), "", v1.EventTypeWarning, reason, message)
	}
}

// Stop kills what runs in the sandboxes and releases their networks. It goes
// on to the next when one fails.
func (b *Sandboxes) Stop(ctx context.Context, ids []string) (pod.Facts, error) {
	return each(ids, func(id string) (pod.Change, error) {
		return pod.SandboxStopped{ID: id}, b.runtime.StopPodSandbox(ctx, id)
	})
}

// Remove removes stopped sandboxes with what is left of their containers. It
// goes on to the next when one fails.
func (b *Sandboxes) Remove(ctx context.Context, ids []string) (pod.Facts, error) {
	return each(ids, func(id string) (pod.Change, error) {
		return pod.SandboxRemoved{ID: id}, b.runtime.RemovePodSandbox(ctx, id)
	})
}

// each does something to each sandbox; a fact counts where there is no error.
func each(ids []string, do func(id string) (pod.Change, error)) (pod.Facts, error) {
	var facts pod.Facts
	var errs []error
	for _, id := range ids {
		fact, err := do(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		facts = append(facts, fact)
	}
	return facts, pod.WithReason(reasonKill, retried(errors.Join(errs...)))
}

// retried makes an error of a runtime that is away one that is soon tried
// again: it is no fault of the pod, and the runtime may be back at any time.
func retried(err error) error {
	if crifact.Unreachable(err) {
		return dag.RetryAfter(err, time.Second)
	}
	return err
}
