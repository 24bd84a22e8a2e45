package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flowlet/flowlet/test/devnode"
	"github.com/flowlet/flowlet/test/devnode/private"
	"github.com/flowlet/flowlet/test/devnode/sweep"
	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

// workDir holds all files of a run. Tests use one of their own, so that they do not meet a user's run.
func workDir() string {
	if dir := os.Getenv("RUN_DIR"); dir != "" {
		return dir
	}
	return ".run"
}

// runHere decides what the machine allows and starts it.
func runHere() int {
	if _, err := runFor(); err != nil {
		return session(func(context.Context) error { return err })
	}
	switch want := os.Getenv("RUNTIME"); {
	case want == "sim":
		fmt.Println("RUNTIME=sim: the pods run in flowlet's simulated runtime: no containers, cgroups or mounts, and nothing for curl")
		return session(runOnSimulation)
	case want != "" && want != "containerd":
		return session(func(context.Context) error { return fmt.Errorf("RUNTIME=%s: containerd or sim", want) })
	case os.Geteuid() != 0:
		fmt.Println("not root: the pods run in flowlet's simulated runtime: no containers, cgroups or mounts, and nothing for curl")
		return session(runOnSimulation)
	}
	code := session(func(ctx context.Context) error {
		if err := toolbox.Packages(ctx, os.Stderr); err != nil {
			return err
		}
		if _, err := toolbox.Ensure(ctx, os.Stderr); err != nil {
			return err
		}
		if wantJaeger() {
			_, err := toolbox.Jaeger(ctx, os.Stderr)
			return err
		}
		return nil
	})
	if code != 0 {
		return code
	}
	return private.Run(workDir(), nil)
}

// runOnContainerd is the run inside of the private namespaces.
func runOnContainerd(ctx context.Context, st sweep.State) (err error) {
	p, err := layOut(st.Dir)
	if err != nil {
		return err
	}
	n, err := devnode.Start(context.WithoutCancel(ctx), st, devnode.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop(context.WithoutCancel(ctx))) }()
	fmt.Printf("containerd is up: %s, pods in %s, cgroup %s\n", n.Endpoint, n.PodCIDR, n.CgroupRoot)
	p.endpoint, p.cgroupRoot, p.env = n.Endpoint, n.CgroupRoot, []string{"PATH=" + n.Path()}
	return p.run(ctx)
}

// runOnSimulation is the run without root.
func runOnSimulation(ctx context.Context) error {
	dir, err := filepath.Abs(workDir())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := private.Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := layOut(dir)
	if err != nil {
		return err
	}
	p.endpoint = "sim:"
	return p.run(ctx)
}

// run starts flowlet, after Jaeger if that is wanted, shows the pods, waits, and takes everything down again.
func (p *play) run(ctx context.Context) (err error) {
	limit, err := runFor()
	if err != nil {
		return err
	}
	if wantJaeger() {
		stop, err := p.startJaeger(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	if err := p.startAgent(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.takeDown()) }()
	if err := p.show(ctx); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
	case limit > 0:
		fmt.Printf("\nrunning; ends by itself %s after the start\n", limit)
	default:
		fmt.Println("\nrunning; press Ctrl-C to end")
	}
	select {
	case <-ctx.Done():
		return nil
	case <-p.ended:
		return fmt.Errorf("flowlet ended by itself: %w; see %s", p.endErr, p.log)
	}
}

// runFor is the value of RUN_FOR, zero for no limit.
func runFor() (time.Duration, error) {
	s := os.Getenv("RUN_FOR")
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("RUN_FOR=%s: a duration such as 60s", s)
	}
	return d, nil
}
