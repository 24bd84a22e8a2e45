package sandbox

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Runtime is what this package needs of the runtime's sandboxes. It is called concurrently.
type Runtime interface {
	Maker
	Ender
}

// Maker makes sandboxes and reads them.
type Maker interface {
	// RunPodSandbox is not idempotent: the name of a sandbox (name, namespace, UID, attempt) can be taken once.
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
	LogRoot       string   // default /var/log/pods
	ClusterDNS    []string // clusterDNS of the configuration
	ClusterDomain string   // clusterDomain of the configuration
	ResolvConf    string   // the node's resolv.conf; empty: none, and a pod gets a resolver on loopback
	NodeIPs       []string // primary first; they choose the family of that loopback
	// CgroupParent names a pod's cgroup as the runtime's driver spells it; nil: the runtime's default.
	CgroupParent func(p *v1.Pod) string
	// Handler returns the runtime handler of a pod's class; nil: always the default one.
	Handler func(p *v1.Pod) (string, error)
}

// Sandboxes makes, stops and removes sandboxes.
type Sandboxes struct {
	runtime  Runtime
	events   pod.Recorder
	settings Settings
}

// New returns Sandboxes over a runtime.
func New(runtime Runtime, events pod.Recorder, settings Settings) *Sandboxes {
	return &Sandboxes{runtime, events, settings}
}

// Config returns the request for a sandbox of s; it reads the node's resolv.conf.
func (b *Sandboxes) Config(s *pod.State, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	panic("not implemented")
}

// Create makes the sandbox.
func (b *Sandboxes) Create(ctx context.Context, s *pod.State, attempt uint32) (pod.Facts, error) {
	panic("not implemented")
}

// Stop kills what runs in the sandboxes and releases their networks.
func (b *Sandboxes) Stop(ctx context.Context, ids ...string) (pod.Facts, error) {
	panic("not implemented")
}

// Remove removes a sandbox that was stopped.
func (b *Sandboxes) Remove(ctx context.Context, id string) (pod.Facts, error) {
	panic("not implemented")
}
