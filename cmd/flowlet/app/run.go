package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/sources/file"
	httpsource "github.com/flowlet/flowlet/sources/http"
)

// SimEndpoint names the embedded simulated runtime.
const SimEndpoint = "sim:"

// Run runs a node agent with that configuration until ctx ends: it takes the
// root directory, opens the local socket and /healthz, and manages the pods of
// its sources. On return all that it started has ended; containers go on.
func Run(ctx context.Context, c *config.Config, log *slog.Logger) error {
	for _, w := range c.Warnings {
		log.Warn(w)
	}
	lock, err := podstore.LockRoot(c.RootDir)
	if err != nil {
		return err
	}
	defer lock.Unlock() //nolint:errcheck // the process ends
	d := &daemon{config: c, log: log, started: time.Now()}
	defer d.close()
	if err := d.wire(ctx); err != nil {
		return err
	}
	return d.run(ctx)
}

// daemon is one run of the agent with what it opened.
type daemon struct {
	config   *config.Config
	log      *slog.Logger
	started  time.Time
	endpoint string
	sim      *crisim.Runtime
	streams  net.Listener // of sim
	runtime  *cri.Client
	files    *file.Source
	url      *httpsource.Source
	agent    *Agent
	local    net.Listener
	healthz  net.Listener
	traces   *traces
	closers  []func() error
	cgroups  *cgroups // nil where nothing of the machine is touched
}

func (d *daemon) close() {
	for i := len(d.closers) - 1; i >= 0; i-- {
		if err := d.closers[i](); err != nil && !errors.Is(err, net.ErrClosed) {
			d.log.Warn("shutting down", "error", err)
		}
	}
}

func (d *daemon) wire(ctx context.Context) error {
	var err error
	if d.traces, err = newTraces(ctx, d.config, d.log); err != nil {
		return err
	}
	if err := d.buildRuntime(); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	d.protect()
	if err := d.prepareHost(); err != nil {
		return err
	}
	node, err := d.node()
	if err != nil {
		return err
	}
	d.agent = New(Parts{
		Config: d.config, Runtime: d.runtime, Sources: d.buildSources(), Node: node, Log: d.log,
		Journal: d.traces.journal,
	})
	return d.listen()
}

func (d *daemon) buildRuntime() error {
	timeout := d.config.Kubelet.RuntimeRequestTimeout.Duration
	options := append(d.traces.clientOptions(), cri.WithTimeouts(cri.Timeouts{Call: timeout, Sandbox: 2 * timeout}))
	d.endpoint = d.config.RuntimeEndpoint()
	if d.endpoint == "" {
		d.endpoint = usualSocket()
	}
	if d.endpoint == SimEndpoint {
		if err := (SimDirs{Logs: d.logRoot()}).Clear(); err != nil {
			return err
		}
		d.sim = crisim.New(crisim.Config{Logs: crisim.Files{}})
		var err error
		if d.streams, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return fmt.Errorf("streams of the simulated runtime: %w", err)
		}
		d.closers = append(d.closers, d.streams.Close)
		conn := d.sim.Conn()
		d.runtime = cri.New(conn, options...)
		d.closers = append(d.closers, conn.Close)
		d.log.Info("the container runtime is simulated: nothing really runs")
		return nil
	}
	client, err := cri.Dial(d.endpoint, options...)
	if err != nil {
		return fmt.Errorf("containerRuntimeEndpoint: %w", err)
	}
	d.runtime = client
	d.closers = append(d.closers, client.Close)
	return nil
}

// usualSocket returns the first of the usual runtimes' sockets that exists, or
// else the first of them.
func usualSocket() string {
	usual := []string{"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/var/run/cri-dockerd.sock"}
	for _, path := range usual {
		if _, err := os.Stat(path); err == nil {
			return "unix://" + path
		}
	}
	return "unix://" + usual[0]
}

func (d *daemon) buildSources() []Source {
	var sources []Source
	k := d.config.Kubelet
	runs := func(uid types.UID) bool { return d.agent.Runs(uid) }
	if k.StaticPodPath != "" {
		d.files = file.New(file.Config{
			Path: k.StaticPodPath, NodeName: d.config.NodeName, Period: k.FileCheckFrequency.Duration, Runs: runs, Log: d.log,
		})
		sources = append(sources, Manifests(d.files))
	}
	if k.StaticPodURL != "" {
		d.url = httpsource.New(httpsource.Config{
			URL: k.StaticPodURL, Header: k.StaticPodURLHeader, NodeName: d.config.NodeName,
			Period: k.HTTPCheckFrequency.Duration, Runs: runs, Log: d.log,
		})
		sources = append(sources, Manifests(d.url))
	}
	return sources
}

func (d *daemon) listen() error {
	var err error
	if d.local, err = server.ListenLocal(d.config.RootDir); err != nil {
		return err
	}
	d.closers = append(d.closers, d.local.Close)
	port := int(*d.config.Kubelet.HealthzPort)
	if port == 0 {
		return nil
	}
	address := net.JoinHostPort(d.config.Kubelet.HealthzBindAddress, strconv.Itoa(port))
	if d.healthz, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("healthzBindAddress, healthzPort: %w", err)
	}
	d.closers = append(d.closers, d.healthz.Close)
	return nil
}

func (d *daemon) run(ctx context.Context) error {
	// The simulated runtime outlives the agent's calls.
	simCtx, stopSim := context.WithCancelCause(context.WithoutCancel(ctx))
	sim := pool.New().WithErrors()
	if d.sim != nil {
		sim.Go(func() error { return d.sim.Run(simCtx) })
		sim.Go(func() error { return d.sim.ServeStreams(simCtx, d.streams) })
	}
	p := pool.New().WithContext(ctx).WithCancelOnError()
	p.Go(d.agent.Run)
	p.Go(d.serve(d.local, d.localAPI()))
	if d.healthz != nil {
		p.Go(d.serve(d.healthz, server.Healthz(d.checks)))
	}
	p.Go(d.watchPolicy)
	p.Go(d.traces.run)
	p.Go(d.notifySystemd)
	if d.cgroups != nil && d.config.PrepareHost {
		p.Go(d.cgroups.enforce)
	}
	d.ready()
	err := p.Wait()
	stopSim(errors.New("the agent has ended"))
	d.log.Info("flowlet has stopped; containers go on")
	return errors.Join(err, sim.Wait())
}

func (d *daemon) serve(l net.Listener, h http.Handler) func(context.Context) error {
	return func(ctx context.Context) error { return server.Serve(ctx, l, h) }
}

func (d *daemon) ready() {
	d.log.Info("flowlet is running", "node", d.config.NodeName, "runtime", d.endpoint,
		"static_pods", d.config.Kubelet.StaticPodPath, "socket", d.local.Addr().String())
	if len(d.config.Kubelet.ClusterDNS) == 0 {
		d.log.Info("clusterDNS is not set: pods with dnsPolicy ClusterFirst, which is the default, have the node's name servers")
	}
	if len(d.agent.sources) == 0 {
		d.log.Warn("nothing tells this agent of pods: set staticPodPath (--pod-manifest-path) or staticPodURL (--manifest-url)")
	}
}

// watchPolicy takes over the policy file when it changes. A bad one is told,
// and the last good one stays.
func (d *daemon) watchPolicy(ctx context.Context) error {
	if d.config.PolicyFile == "" {
		return nil
	}
	return config.Watch(ctx, d.config.PolicyFile, func() {
		p, err := d.config.ReloadPolicy()
		if err != nil {
			d.log.Error("policy not taken over", "error", err)
			return
		}
		d.agent.Engine.SetPolicy(p)
		d.log.Info("policy taken over", "file", d.config.PolicyFile)
	})
}

// simulated reports whether nothing of the machine is to be touched.
func (d *daemon) simulated() bool { return strings.HasPrefix(d.endpoint, SimEndpoint) }

// logRoot is where the logs of pods are.
func (d *daemon) logRoot() string {
	if d.simulated() {
		return filepath.Join(d.config.RootDir, "logs")
	}
	return d.config.Kubelet.PodLogsDir
}
