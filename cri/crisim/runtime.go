package crisim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
)

// Runtime is a simulated container runtime. Its methods may be called concurrently and, unless they say so, do not block.
type Runtime struct {
	cfg    Config
	memory *bufconn.Listener
	calls  *callLog
	faults faults
	gate   gate
	slots  chan struct{} // nil: any number
	serial chan struct{} // capacity 1: the critical section

	mu        sync.Mutex // guards all below
	rng       *rand.Rand
	latencies map[string]Latency
	timers    timers
	store     store
	hub       hub
	streams   streaming.Server // nil: none are served
}

// New returns a runtime that nobody can reach yet: see Run, Serve and Register.
func New(cfg Config) *Runtime {
	cfg = cfg.withDefaults()
	r := &Runtime{
		cfg:       cfg,
		memory:    bufconn.Listen(pipeSize),
		calls:     newCallLog(cfg.CallLimit, cfg.CallLog),
		serial:    make(chan struct{}, 1),
		rng:       rand.New(rand.NewPCG(cfg.Seed, 0x666c6f776c6574)), //nolint:gosec // repeatable on purpose
		latencies: map[string]Latency{},
		store:     newStore(cfg),
		hub:       newHub(cfg.EventRetention),
	}
	maps.Copy(r.latencies, cfg.Latency)
	if cfg.Slots > 0 {
		r.slots = make(chan struct{}, cfg.Slots)
	}
	return r
}

// pipeSize is the buffer of one direction of an in-memory connection.
const pipeSize = 256 << 10

// Register adds both services to a server of the caller's. Restart and Down then cut event streams and refuse calls, but
// cannot close the server's connections; Serve does that as well.
func (r *Runtime) Register(s *grpc.Server) {
	runtimeapi.RegisterRuntimeServiceServer(s, &runtimeServer{Runtime: r})
	runtimeapi.RegisterImageServiceServer(s, &imageServer{Runtime: r})
}

// Run serves the in-memory connections of Conn until ctx ends, and returns nil when every goroutine of the runtime has
// ended. It may be called once.
func (r *Runtime) Run(ctx context.Context) error { return r.Serve(ctx, r.memory) }

// Serve serves connections of lis until ctx ends; it closes lis and returns when every call has ended. Run and Serve may
// go on side by side.
func (r *Runtime) Serve(ctx context.Context, lis net.Listener) error {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.WaitForHandlers(true))
	r.Register(server)
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		server.Stop()
	})
	err := server.Serve(&gatedListener{Listener: lis, gate: &r.gate})
	if !unhook() {
		<-stopped
		r.end()
		return nil
	}
	server.Stop()
	return fmt.Errorf("simulated runtime on %s: %w", lis.Addr(), err)
}

// end stops what would go on after the last call.
func (r *Runtime) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endTimers()
	r.store.containers.each(func(c *container) {
		if c.process != nil {
			c.process.closeLog()
		}
	})
}

// maxMessage is the message limit of containerd and the kubelet in bytes.
const maxMessage = 16 << 20

// Conn returns a new in-memory connection to the runtime. It connects when Run runs and may be made before. The caller
// closes it.
func (r *Runtime) Conn(opts ...grpc.DialOption) *grpc.ClientConn {
	all := append([]grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.memory.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, MaxDelay: 3 * time.Second},
		}),
	}, opts...)
	conn, err := grpc.NewClient("passthrough:///crisim", all...)
	if err != nil {
		panic(fmt.Sprintf("crisim: in-memory connection: %v", err)) // only a wrong option of the caller can do that
	}
	return conn
}

// runtimeServer and imageServer keep the generated methods off Runtime's own method set.
type runtimeServer struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	*Runtime
}

type imageServer struct {
	runtimeapi.UnimplementedImageServiceServer
	*Runtime
}

var (
	_ runtimeapi.RuntimeServiceServer = (*runtimeServer)(nil)
	_ runtimeapi.ImageServiceServer   = (*imageServer)(nil)
)
