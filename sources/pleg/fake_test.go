package pleg_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// fake is a runtime whose objects the test moves by hand.
type fake struct {
	mu         sync.Mutex
	sandboxes  map[string]*runtimeapi.PodSandboxStatus
	containers map[string]*runtimeapi.ContainerStatus
	of         map[string]string // sandbox by container
	conditions []*runtimeapi.RuntimeCondition
	handlers   []*runtimeapi.RuntimeHandler
	streams    []chan *runtimeapi.ContainerEventResponse

	down      bool
	noEvents  bool
	distort   func(ev *runtimeapi.ContainerEventResponse, send func(*runtimeapi.ContainerEventResponse))
	hang      map[string]bool // objects whose status is never answered
	broken    map[string]bool // objects whose status is an error
	history   []*runtimeapi.ContainerEventResponse
	replay    bool // a new stream begins with the history
	calls     map[string]int
	inFlight  int
	mostAtOne int
	senders   sync.WaitGroup
}

func newFake() *fake {
	return &fake{
		sandboxes: map[string]*runtimeapi.PodSandboxStatus{}, containers: map[string]*runtimeapi.ContainerStatus{},
		of: map[string]string{}, hang: map[string]bool{}, broken: map[string]bool{}, calls: map[string]int{},
		conditions: []*runtimeapi.RuntimeCondition{{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: true}},
	}
}

func (f *fake) enter(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	if f.down {
		return status.Error(codes.Unavailable, "connection refused")
	}
	return nil
}

func (f *fake) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *fake) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func labels(uid, container string) map[string]string {
	l := map[string]string{pod.LabelPodUID: uid, pod.LabelPodName: uid, pod.LabelPodNamespace: "ns"}
	if container != "" {
		l[pod.LabelContainerName] = container
	}
	return l
}

func (f *fake) run(uid, id string) {
	f.do(func() {
		f.sandboxes[id] = &runtimeapi.PodSandboxStatus{
			Id: id, Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid}, CreatedAt: time.Now().UnixNano(), Labels: labels(uid, ""),
			Annotations: map[string]string{pod.AnnotationSource: "file"}, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"},
		}
		f.event(id, id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	})
}

func (f *fake) create(sandbox, id, name string, attempt uint32) {
	f.do(func() {
		uid := f.sandboxes[sandbox].Metadata.Uid
		f.of[id] = sandbox
		f.containers[id] = &runtimeapi.ContainerStatus{
			Id: id, Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}, CreatedAt: time.Now().UnixNano(), Labels: labels(uid, name),
		}
		f.event(sandbox, id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	})
}

func (f *fake) start(id string) {
	f.do(func() {
		f.containers[id].State, f.containers[id].StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
		f.event(f.of[id], id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	})
}

func (f *fake) exit(id string, code int32) {
	f.do(func() {
		c := f.containers[id]
		c.State, c.FinishedAt, c.ExitCode, c.Reason = runtimeapi.ContainerState_CONTAINER_EXITED, time.Now().UnixNano(), code, "Error"
		f.event(f.of[id], id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	})
}

func (f *fake) stop(sandbox string) {
	f.do(func() {
		f.sandboxes[sandbox].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		f.event(sandbox, sandbox, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	})
}

func (f *fake) remove(id string) {
	f.do(func() {
		sandbox := f.of[id]
		delete(f.containers, id)
		f.event(sandbox, id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	})
}

func (f *fake) removeSandbox(id string) {
	f.do(func() {
		f.event(id, id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
		delete(f.sandboxes, id)
	})
}

// event is called with the lock held.
func (f *fake) event(sandbox, id string, kind runtimeapi.ContainerEventType) {
	if len(f.streams) == 0 && !f.replay {
		return // nobody hears it
	}
	ev := &runtimeapi.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(),
		PodSandboxStatus: proto.CloneOf(f.sandboxes[sandbox]),
	}
	for _, c := range slices.Sorted(maps.Keys(f.containers)) {
		if f.of[c] == sandbox {
			ev.ContainersStatuses = append(ev.ContainersStatuses, proto.CloneOf(f.containers[c]))
		}
	}
	f.history = append(f.history, ev)
	streams := slices.Clone(f.streams)
	send := func(ev *runtimeapi.ContainerEventResponse) {
		for _, s := range streams {
			select {
			case s <- ev:
			default:
			}
		}
	}
	if f.distort == nil {
		send(ev)
		return
	}
	f.distort(ev, send)
}

// after is for events that come late.
func (f *fake) after(d time.Duration, do func()) {
	f.senders.Go(func() {
		time.Sleep(d)
		do()
	})
}

func (f *fake) GetContainerEvents(ctx context.Context, emit func(*runtimeapi.ContainerEventResponse)) error {
	if err := f.enter("GetContainerEvents"); err != nil {
		return err
	}
	events := make(chan *runtimeapi.ContainerEventResponse, 1000)
	var old []*runtimeapi.ContainerEventResponse
	unsupported := false
	f.do(func() {
		if unsupported = f.noEvents; unsupported {
			return
		}
		if f.replay {
			old = slices.Clone(f.history)
		}
		f.streams = append(f.streams, events)
	})
	if unsupported {
		return status.Error(codes.Unimplemented, "unknown method GetContainerEvents")
	}
	for _, ev := range old {
		emit(ev)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-events:
			if !ok {
				return status.Error(codes.Unavailable, "connection reset")
			}
			emit(ev)
		}
	}
}

// crash takes the runtime away for a while.
func (f *fake) crash() {
	f.do(func() {
		f.down = true
		for _, s := range f.streams {
			close(s)
		}
		f.streams = nil
	})
}

func (f *fake) ListPodSandbox(_ context.Context, filter *runtimeapi.PodSandboxFilter) (out []*runtimeapi.PodSandbox, err error) {
	if err := f.enter("ListPodSandbox"); err != nil {
		return nil, err
	}
	f.do(func() {
		for _, id := range slices.Sorted(maps.Keys(f.sandboxes)) {
			sb := f.sandboxes[id]
			if matches(filter.GetLabelSelector(), sb.Labels) {
				out = append(out, &runtimeapi.PodSandbox{
					Id: id, Metadata: sb.Metadata, State: sb.State, CreatedAt: sb.CreatedAt, Labels: sb.Labels, Annotations: sb.Annotations,
				})
			}
		}
	})
	return out, nil
}

func (f *fake) ListContainers(_ context.Context, filter *runtimeapi.ContainerFilter) (out []*runtimeapi.Container, err error) {
	if err := f.enter("ListContainers"); err != nil {
		return nil, err
	}
	f.do(func() {
		for _, id := range slices.Sorted(maps.Keys(f.containers)) {
			c := f.containers[id]
			if matches(filter.GetLabelSelector(), c.Labels) {
				out = append(out, &runtimeapi.Container{
					Id: id, PodSandboxId: f.of[id], Metadata: c.Metadata, State: c.State, CreatedAt: c.CreatedAt, Labels: c.Labels,
				})
			}
		}
	})
	return out, nil
}

func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func (f *fake) PodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	return read(ctx, f, id, f.sandboxes)
}

func (f *fake) ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	return read(ctx, f, id, f.containers)
}

// readTime is how long a read of one object takes.
const readTime = 10 * time.Millisecond

func read[M proto.Message](ctx context.Context, f *fake, id string, from map[string]M) (out M, err error) {
	if err := f.enter("status " + id); err != nil {
		return out, err
	}
	var hang, broken bool
	f.do(func() {
		hang, broken = f.hang[id], f.broken[id]
		f.inFlight++
		f.mostAtOne = max(f.mostAtOne, f.inFlight)
	})
	defer f.do(func() { f.inFlight-- })
	if hang {
		<-ctx.Done()
		return out, status.FromContextError(ctx.Err()).Err()
	}
	time.Sleep(readTime)
	f.do(func() {
		m, ok := from[id]
		switch {
		case broken:
			err = status.Error(codes.Unknown, "bundle is damaged")
		case !ok:
			err = status.Error(codes.NotFound, "no such object")
		default:
			out = proto.CloneOf(m)
		}
	})
	return out, err
}

func (f *fake) Status(context.Context) (out *runtimeapi.StatusResponse, err error) {
	if err := f.enter("Status"); err != nil {
		return nil, err
	}
	f.do(func() {
		out = &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: f.conditions}, RuntimeHandlers: f.handlers}
	})
	return out, nil
}
