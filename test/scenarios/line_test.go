package scenarios_test

import (
	"context"
	"path"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/flowlet/flowlet/cri/crisim"
)

// line is one agent's connection to the runtime. It can be cut as a SIGKILL
// cuts it: what is under way then goes on in the runtime, nobody hears of it,
// and nothing more gets through.
type line struct {
	node   *node
	direct *crisim.Direct
	isCut  chan struct{} // closed by cut
	calls  sync.WaitGroup

	mu      sync.Mutex
	stuck   map[string]bool // methods that never return, whatever the deadline
	streams map[*int]context.CancelCauseFunc
}

var _ grpc.ClientConnInterface = (*line)(nil)

var errDead = status.Error(codes.Unavailable, "the agent is dead")

func newLine(n *node) *line {
	return &line{node: n, direct: n.sim.Direct(), isCut: make(chan struct{}), stuck: map[string]bool{}, streams: map[*int]context.CancelCauseFunc{}}
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead() {
		return
	}
	close(l.isCut)
	for _, cancel := range l.streams {
		cancel(errDead)
	}
}

func (l *line) dead() bool {
	select {
	case <-l.isCut:
		return true
	default:
		return false
	}
}

// stick makes calls of a method never return, not even at their deadline.
func (l *line) stick(method string, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stuck[method] = on
}

func (l *line) sticks(method string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stuck[method]
}

// Invoke implements grpc.ClientConnInterface.
func (l *line) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	name := path.Base(method)
	if l.dead() {
		return errDead
	}
	l.node.before(l, name, args)
	if l.sticks(name) {
		<-l.isCut
		return errDead
	}
	arrived(opts)
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	timed, stop := detached, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		timed, stop = context.WithDeadline(detached, deadline) // the runtime knows it too
	}
	answer := reply.(proto.Message).ProtoReflect().New().Interface()
	done := make(chan error, 1) // capacity 1: nobody may be there to receive
	l.calls.Go(func() {
		defer stop()
		defer cancel(nil)
		err := l.direct.Invoke(timed, method, args, answer)
		l.node.after(args)
		done <- err
	})
	unhook := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer unhook()
	select {
	case err := <-done:
		if l.dead() {
			return errDead
		}
		proto.Merge(reply.(proto.Message), answer)
		return err
	case <-l.isCut:
		unhook() // it goes on
		return errDead
	}
}

// NewStream implements grpc.ClientConnInterface.
func (l *line) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if l.dead() {
		return nil, errDead
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	id := new(int)
	l.streams[id] = cancel
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.streams, id)
	})
	return l.direct.NewStream(ctx, desc, method, opts...)
}

// close returns when nothing of the connection is left.
func (l *line) close() {
	l.calls.Wait()
	_ = l.direct.Close()
}

// arrived tells the client that the request reached the runtime.
func arrived(opts []grpc.CallOption) {
	for _, o := range opts {
		if p, ok := o.(grpc.PeerCallOption); ok {
			*p.PeerAddr = peer.Peer{Addr: here{}}
		}
	}
}

type here struct{}

func (here) Network() string { return "scenario" }
func (here) String() string  { return "runtime" }
