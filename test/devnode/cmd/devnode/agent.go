package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

// play is one run of flowlet with the example pods.
type play struct {
	dir, root, manifests, log string
	repo, flowlet             string
	endpoint, cgroupRoot      string
	tracing                   string   // OTLP endpoint, empty for none
	env                       []string // added to flowlet's

	begin  time.Time
	agent  *exec.Cmd
	ended  chan struct{} // closed when flowlet has ended
	endErr error         // how, to be read after ended
}

// layOut makes a clean work directory with the example manifests. The lock, the state file and what the private
// namespaces mounted stay.
func layOut(dir string) (*play, error) {
	repo, err := toolbox.Repo()
	if err != nil {
		return nil, err
	}
	p := &play{
		dir: dir, root: filepath.Join(dir, "flowlet"), manifests: filepath.Join(dir, "pods"), log: filepath.Join(dir, "log", "flowlet.log"),
		repo: repo, flowlet: filepath.Join(repo, "bin", "flowlet"), ended: make(chan struct{}),
	}
	if _, err := os.Stat(p.flowlet); err != nil {
		return nil, fmt.Errorf("build flowlet first (make build): %w", err)
	}
	for _, path := range []string{p.root, p.manifests, p.log} {
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{p.root, p.manifests, filepath.Dir(p.log)} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
	}
	examples, err := filepath.Glob(filepath.Join(repo, "examples", "pods", "*.yaml"))
	if err != nil || len(examples) == 0 {
		return nil, errors.Join(errors.New("no example pods in the checkout"), err)
	}
	for _, path := range examples {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(p.manifests, filepath.Base(path)), b, 0o644); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// startAgent starts flowlet. Its own process group keeps Ctrl-C away from it: pods are to end first.
func (p *play) startAgent() error {
	config, err := yaml.Marshal(p.configuration())
	if err != nil {
		return err
	}
	file := filepath.Join(p.dir, "kubelet.yaml")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return err
	}
	log, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.agent = exec.Command(p.flowlet, "run", "--root-dir", p.root, "--config", file, "--prepare-host=false")
	p.agent.Env = append(os.Environ(), p.env...)
	p.agent.Stdout, p.agent.Stderr = log, log
	p.agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	p.begin = time.Now()
	if err := p.agent.Start(); err != nil {
		return err
	}
	go func() {
		defer close(p.ended)
		if p.endErr = p.agent.Wait(); p.endErr == nil {
			p.endErr = errors.New("exit code 0")
		}
	}()
	return nil
}

// configuration is a KubeletConfiguration, written as a map to show only what is set.
func (p *play) configuration() map[string]any {
	c := map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"staticPodPath":            p.manifests,
		"containerRuntimeEndpoint": p.endpoint,
		"healthzPort":              0, // a kubelet may have the port
		"failSwapOn":               false,
		"failCgroupV1":             false,
		"enforceNodeAllocatable":   []string{"none"},
	}
	if p.cgroupRoot != "" {
		c["cgroupDriver"], c["cgroupRoot"] = "cgroupfs", p.cgroupRoot
	}
	if p.tracing != "" {
		c["tracing"] = map[string]any{"endpoint": p.tracing, "samplingRatePerMillion": 1000000}
	}
	return c
}

// takeDown removes the manifests, waits until the pods are gone, and stops flowlet.
func (p *play) takeDown() error {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	err := p.removePods(ctx)
	_ = p.agent.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-ctx.Done():
		_ = p.agent.Process.Kill()
		<-p.ended
		err = errors.Join(err, fmt.Errorf("flowlet did not stop; see %s", p.log))
	}
	if err == nil {
		fmt.Println("flowlet stopped; logs are in", filepath.Dir(p.log))
		err = errors.Join(os.RemoveAll(p.root), os.RemoveAll(p.manifests))
	}
	return err
}

func (p *play) removePods(ctx context.Context) error {
	fmt.Println("removing the manifests and waiting for the pods to end")
	begin := time.Now()
	files, err := filepath.Glob(filepath.Join(p.manifests, "*"))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	if err != nil {
		return err
	}
	for {
		pods, err := p.pods(ctx)
		if err == nil && len(pods) == 0 {
			fmt.Printf("all pods are gone after %.1fs\n", time.Since(begin).Seconds())
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("flowlet ended before its pods: %w; see %s", p.endErr, p.log)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d pods are still there; see %s", len(pods), p.log), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pods asks flowlet for all pods.
func (p *play) pods(ctx context.Context) ([]corev1.Pod, error) {
	out, err := p.ask(ctx, "get", "pods", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("flowlet get pods -o json: %w", err)
	}
	return list.Items, nil
}

// ask runs a read command of flowlet, as a user in a second terminal does.
func (p *play) ask(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, p.flowlet, append(args, "--root-dir", p.root)...).Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		err = fmt.Errorf("flowlet %s: %w: %s", args[0], err, ended.Stderr)
	}
	return out, err
}
