package scenarios_test

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/stages"
)

// server is a source whose pods can be changed in place, as those of an API
// server can. It outlives the agents that ask it.
type server struct {
	mu      sync.Mutex
	pods    map[types.UID]*pod.Spec
	away    bool          // it does not answer an agent that starts
	changed chan struct{} // capacity 1: one token stands for any number of changes
}

var _ app.Source = (*server)(nil)

func newServer() *server {
	return &server{pods: map[types.UID]*pod.Spec{}, changed: make(chan struct{}, 1)}
}

// Name implements pipeline.Source.
func (*server) Name() string { return pod.SourceAPI }

// Run implements pipeline.Source.
func (s *server) Run(ctx context.Context, emit func(stages.Event)) error {
	if s.isAway() {
		<-ctx.Done()
		return nil
	}
	s.tell(emit)
	emit(stages.Event{Topic: pipeline.Synced(s.Name()), Source: s.Name(), Seen: time.Now()})
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
			s.tell(emit)
		}
	}
}

func (s *server) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

func (s *server) tell(emit func(stages.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, spec := range s.pods {
		emit(stages.Event{Key: pod.KeyOf(uid), Change: pod.SpecSet{Spec: spec}, Source: s.Name(), Seen: time.Now()})
	}
}

// apply creates or changes a pod.
func (n *node) apply(text string) {
	n.Helper()
	p := &v1.Pod{}
	require.NoError(n, json.Unmarshal([]byte(text), p))
	p.Namespace = "default"
	if p.UID == "" {
		p.UID = types.UID("uid-" + p.Name)
	}
	s := n.server
	s.mu.Lock()
	spec := &pod.Spec{Pod: p, Source: pod.SourceAPI, Seen: time.Now(), Sum: uint64(len(text))}
	s.pods[p.UID] = spec
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	n.settle()
}

func ephemeral(name, target string, more ...func(c *v1.Container)) part {
	return func(p *v1.Pod) {
		c := v1.Container{Name: name, Image: "app:1", ImagePullPolicy: v1.PullIfNotPresent}
		for _, m := range more {
			m(&c)
		}
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, v1.EphemeralContainer{
			EphemeralContainerCommon: v1.EphemeralContainerCommon(c), TargetContainerName: target,
		})
	}
}
