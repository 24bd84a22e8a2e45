package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

// Endpoints of the simulated runtime in this process.
const (
	Sim       = "sim:"       // over an in-memory gRPC connection
	SimDirect = "sim:direct" // called without gRPC, to see what gRPC costs
)

// Backend is the container runtime that the agent and the floor use.
type Backend struct {
	Endpoint string // Sim, SimDirect or unix:///path
	// Latency of the simulated runtime in this process, by method.
	Latency map[string]time.Duration
}

// simName is the name by which the simulated runtime is known on a socket too.
const simName = "flowlet-sim"

// session is one connection to the runtime, for one run of one driver.
type session struct {
	client    *cri.Client
	calls     *calls
	sim       *crisim.Runtime // nil on a socket
	name      string
	version   string
	simulated bool
	close     func() error
}

// open connects, and makes a simulated runtime of this process anew.
func (b Backend) open(ctx context.Context, images []string) (*session, error) {
	s := &session{calls: &calls{}}
	switch {
	case b.Endpoint == Sim || b.Endpoint == SimDirect:
		b.simulate(s, images)
	case strings.HasPrefix(b.Endpoint, Sim):
		return nil, fmt.Errorf("--runtime %s: use %s, %s or unix:///path", b.Endpoint, Sim, SimDirect)
	default:
		client, err := cri.Dial(b.Endpoint, cri.WithObserver(s.calls))
		if err != nil {
			return nil, err
		}
		s.client, s.close = client, client.Close
	}
	if err := s.greet(ctx, images); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (b Backend) simulate(s *session, images []string) {
	c := crisim.Config{Seed: 1, Latency: map[string]crisim.Latency{}, Images: map[string]crisim.Image{}, CallLimit: 20_000}
	for method, d := range b.Latency {
		c.Latency[method] = crisim.Fixed(d)
	}
	for _, ref := range images {
		c.Images[ref] = crisim.Image{Present: true}
	}
	s.sim = crisim.New(c)
	ctx, stop := context.WithCancelCause(context.Background())
	p := pool.New().WithErrors()
	p.Go(func() error { return s.sim.Run(ctx) })
	end := func() error {
		stop(errors.New("the run is over"))
		return p.Wait()
	}
	if b.Endpoint == SimDirect {
		conn := s.sim.Direct()
		s.client = cri.New(conn, cri.WithObserver(s.calls))
		s.close = func() error { return errors.Join(conn.Close(), end()) }
		return
	}
	conn := s.sim.Conn()
	s.client = cri.New(conn, cri.WithObserver(s.calls))
	s.close = func() error { return errors.Join(conn.Close(), end()) }
}

// greetWait is how long a runtime may take to answer the first call.
const greetWait = 10 * time.Second

// greet asks who the runtime is and looks whether the images are there; a
// simulated one pulls those that are not.
func (s *session) greet(ctx context.Context, images []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, greetWait, errors.New("the runtime does not answer"))
	defer cancel()
	v, err := s.client.Version(ctx)
	if err != nil {
		return err
	}
	s.name, s.version = v.GetRuntimeName(), v.GetRuntimeVersion()
	s.simulated = s.name == simName
	for _, ref := range images {
		spec := &runtimeapi.ImageSpec{Image: ref}
		found, err := s.client.ImageStatus(ctx, spec)
		switch {
		case err != nil:
			return err
		case found != nil:
		case !s.simulated:
			return fmt.Errorf("image %s is not on the runtime: pull it first, or name another with --image (crictl images lists them)", ref)
		default:
			if _, err := s.client.PullImage(ctx, spec, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// FixedProfile are the times of containerd 2 on two CPUs with one pod at a
// time: 130 ms for a sandbox, 60 ms for a container, 1 ms for a read.
func FixedProfile() map[string]time.Duration {
	return map[string]time.Duration{
		"RunPodSandbox": 130 * time.Millisecond, "PodSandboxStatus": time.Millisecond, "ImageStatus": time.Millisecond,
		"CreateContainer": 25 * time.Millisecond, "StartContainer": 35 * time.Millisecond, "ContainerStatus": time.Millisecond,
	}
}
