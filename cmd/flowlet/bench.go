package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/internal/bench"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure this build's agent, against a bare loop that makes the same calls",
		Long: "Measure an agent of this build with a source and a directory of its own. Its pods live in the namespace " +
			bench.Namespace + " and are removed again, also after Ctrl-C.",
	}
	cmd.AddCommand(benchStart(), benchSync())
	return cmd
}

// benchFlags are what both workloads have in common.
type benchFlags struct {
	endpoint string
	process  bool
	profile  string
	latency  map[string]string
	images   []string
	distinct int
	command  []string
	shape    bench.Shape
	podNet   bool
	runs     int
	timeout  time.Duration
	workDir  string
	config   string
	policy   string
	output   string
	seed     uint64
	quiet    bool
}

func (f *benchFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.endpoint, "runtime", bench.Sim, "sim: (simulated, in this process), sim:direct (the same without gRPC) or unix:///path of a CRI socket")
	fs.BoolVar(&f.process, "sim-process", false, "simulate the runtime in a process of its own, so that CPU and memory are the agent's alone")
	fs.StringVar(&f.profile, "profile", "zero", "latencies of sim:: zero, or fixed (those of containerd with one pod at a time)")
	fs.StringToStringVar(&f.latency, "latency", nil, "latency of methods of sim:, as RunPodSandbox=130ms,CreateContainer=25ms")
	fs.StringSliceVar(&f.images, "image", nil, "images that the runtime has, for the containers in turn; needed with a real runtime")
	fs.IntVar(&f.distinct, "distinct-images", 1, "number of different images with a simulated runtime")
	fs.StringSliceVar(&f.command, "command", nil, "command of the containers; empty: the image's")
	fs.IntVar(&f.shape.Containers, "containers", 1, "containers per pod")
	fs.IntVar(&f.shape.Volumes, "volumes", 0, "emptyDir volumes per pod")
	fs.BoolVar(&f.podNet, "pod-network", false, "pods with a network of their own (needs CNI) instead of the node's")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Minute, "time for one batch")
	fs.StringVar(&f.workDir, "work-dir", "", "where the agent's directory is made; empty: the usual place for temporary files")
	fs.StringVar(&f.config, "config", "", "KubeletConfiguration of the agent")
	fs.StringVar(&f.policy, "policy", "", "policy file of the agent: slots of classes, such as sandbox and container")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the bootstrap intervals")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on stderr")
	fs.StringVarP(&f.output, "output", "o", "", "output: json; text when empty")
}

func benchStart() *cobra.Command {
	var f benchFlags
	var batches []int
	var driver string
	cmd := &cobra.Command{
		Use: "start", Short: "Start batches of pods and measure how long that takes and what it costs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := bench.StartOptions{Batches: batches, Floor: driver == "floor"}
			if driver != "agent" && driver != "floor" {
				return fmt.Errorf("--driver %s: use agent, or floor for the agent and the floor", driver)
			}
			if slices.Min(append(slices.Clone(batches), f.runs, f.shape.Containers)) < 1 {
				return errors.New("--pods, --runs, --containers: must be 1 or more")
			}
			return f.measure(cmd, func(ctx context.Context, b *bench.Bench) (any, string, error) {
				r, err := b.Start(ctx, o)
				return r, r.Text(), err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().IntSliceVar(&batches, "pods", []int{1, 10, 110, 500}, "pods per batch")
	cmd.Flags().IntVar(&f.runs, "runs", 5, "runs of each batch, of which the medians are reported")
	cmd.Flags().StringVar(&driver, "driver", "agent", "agent, or floor to measure a bare loop that makes the same calls too, in turns")
	return cmd
}

func benchSync() *cobra.Command {
	var f benchFlags
	o := bench.SyncOptions{}
	cmd := &cobra.Command{
		Use: "sync", Short: "Measure what it costs to look at settled pods again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if min(o.Pods, f.shape.Containers) < 1 || o.For <= 0 {
				return errors.New("--pods, --containers, --for: must be more than 0")
			}
			return f.measure(cmd, func(ctx context.Context, b *bench.Bench) (any, string, error) {
				r, err := b.Sync(ctx, o)
				return r, r.Text(), err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&o.Pods, "pods", 110, "settled pods")
	cmd.Flags().DurationVar(&o.For, "for", 2*time.Second, "time for each kind of sync")
	return cmd
}

// measure does a measurement and prints its report, also what there is of it
// after an error.
func (f *benchFlags) measure(cmd *cobra.Command, do func(context.Context, *bench.Bench) (any, string, error)) (err error) {
	root, err := app.BenchRoot(f.workDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	b, stop, err := f.bench(cmd, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	report, text, err := do(cmd.Context(), b)
	a := ask{output: f.output}
	return errors.Join(err, a.print(cmd.OutOrStdout(), report, func() string { return text }))
}

func (f *benchFlags) bench(cmd *cobra.Command, root string) (*bench.Bench, func() error, error) {
	latency, err := f.latencies()
	if err != nil {
		return nil, nil, err
	}
	f.shape.Images, f.shape.Command, f.shape.HostNetwork = f.images, f.command, !f.podNet
	if len(f.images) == 0 {
		for i := range max(f.distinct, 1) {
			f.shape.Images = append(f.shape.Images, "bench.flowlet.dev/app:"+strconv.Itoa(i))
		}
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	agents := app.BenchAgents{Root: root, ConfigFile: f.config, PolicyFile: f.policy, Log: log}
	b := &bench.Bench{
		Backend: bench.Backend{Endpoint: f.endpoint, Latency: latency}, Shape: f.shape, New: agents.Agent, Machine: agents.Machine,
		Runs: f.runs, Timeout: f.timeout, Progress: f.progress(cmd.ErrOrStderr()), Seed: f.seed,
	}
	if !f.process {
		return b, func() error { return nil }, nil
	}
	endpoint, stop, err := app.SimProcess(cmd.Context(), root)
	b.Backend.Endpoint = endpoint
	return b, stop, err
}

func (f *benchFlags) progress(w io.Writer) func(string) {
	if f.quiet {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintln(w, line) }
}

func (f *benchFlags) latencies() (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	switch f.profile {
	case "zero":
	case "fixed":
		out = bench.FixedProfile()
	default:
		return nil, fmt.Errorf("--profile %s: use zero or fixed", f.profile)
	}
	for method, text := range f.latency {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("--latency %s: %w", method, err)
		}
		out[method] = d
	}
	if len(out) > 0 && (f.process || f.endpoint != bench.Sim && f.endpoint != bench.SimDirect) {
		return nil, errors.New("--profile, --latency: only the simulated runtime in this process (sim:) has latencies")
	}
	return out, nil
}
