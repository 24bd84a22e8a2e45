package scenarios_test

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/internal/pod"
)

// volumes are scripted: a mount takes its time, an unmount may hang.
type volumes struct {
	app.NoVolumes
	takes map[string]time.Duration // by volume

	mu     sync.Mutex
	hung   map[string]chan struct{} // unmounts that block, by the pod's full name
	mounts int
}

var _ app.Volumes = (*volumes)(nil)

func (s *volumes) Ensure(ctx context.Context, _ *v1.Pod, v *v1.Volume) error {
	s.mu.Lock()
	s.mounts++
	s.mu.Unlock()
	t := time.NewTimer(s.takes[v.Name])
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unmount blocks as for a dead server: no deadline ends it.
func (s *volumes) Unmount(_ context.Context, st *pod.State) error {
	s.mu.Lock()
	hung := s.hung[st.FullName()]
	s.mu.Unlock()
	if hung != nil {
		<-hung
	}
	return nil
}

func (s *volumes) hang(fullName string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.hung = map[string]chan struct{}{fullName: c}
	return func() { close(c) }
}
