package browser

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed pods
var pods embed.FS

// Site is a running agent with its page.
type Site struct {
	URL string // opens the page once

	flowlet, root string
	agent, page   *exec.Cmd
}

// Start runs an agent below dir, which is empty, with the pods of this package.
// flowlet is the binary. The caller stops it.
func Start(ctx context.Context, flowlet, dir string) (*Site, error) {
	s := &Site{flowlet: flowlet, root: filepath.Join(dir, "root")}
	manifests := filepath.Join(dir, "manifests")
	if err := os.CopyFS(manifests, sub(pods, "pods")); err != nil {
		return nil, fmt.Errorf("writing the pods: %w", err)
	}
	if err := os.Mkdir(s.root, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "agent.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.agent = command(ctx, flowlet, "run", "--container-runtime-endpoint=sim:", "--root-dir="+s.root, "--pod-manifest-path="+manifests,
		"--healthz-port=0", "--hostname-override=node-1")
	s.agent.Stderr = log
	if err := s.agent.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", flowlet, err)
	}
	if err := s.Until(ctx, "shop-node-1", "Running"); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func sub(f embed.FS, dir string) fs.FS {
	out, err := fs.Sub(f, dir)
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return out
}

// command ends with this process, and politely with ctx.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	return c
}

// Until waits until `flowlet get pods` shows a pod with that word; ctx bounds it.
func (s *Site) Until(ctx context.Context, pod, word string) error {
	for {
		out, err := s.Say(ctx, "get", "pods")
		for line := range strings.Lines(out) {
			if strings.Contains(line, pod) && strings.Contains(line, word) {
				return nil
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("pod %s is not %s: %w\n%s", pod, word, errors.Join(context.Cause(ctx), err), out)
		}
	}
}

// Say runs a command that asks the agent.
func (s *Site) Say(ctx context.Context, args ...string) (string, error) {
	out, err := command(ctx, s.flowlet, append(args, "--root-dir="+s.root)...).CombinedOutput()
	return string(out), err
}

// open runs `flowlet ui`, whose first line is the address.
func (s *Site) open(ctx context.Context) error {
	s.page = command(ctx, s.flowlet, "ui", "--root-dir="+s.root)
	out, err := s.page.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.page.Start(); err != nil {
		return fmt.Errorf("starting the page: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading the page's address: %w", err)
	}
	s.URL = strings.TrimSpace(line)
	return nil
}

// StopAgent ends the agent; its page stays.
func (s *Site) StopAgent() error { return end(&s.agent) }

// Stop ends everything.
func (s *Site) Stop() error { return errors.Join(end(&s.page), end(&s.agent)) }

func end(c **exec.Cmd) error {
	was := *c
	*c = nil
	if was == nil || was.Process == nil {
		return nil
	}
	if err := was.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return was.Wait()
}
