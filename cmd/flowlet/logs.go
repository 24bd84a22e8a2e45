package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/internal/server/remote"
)

// logFlags are what of a log is wanted.
type logFlags struct {
	follow, previous, timestamps, all bool
	tail, limit                       int64
	since                             time.Duration
	sinceTime                         string
}

func logsCommand() *cobra.Command {
	var r reach
	var f logFlags
	cmd := &cobra.Command{
		Use: "logs POD", Short: "Print what a container has logged", Args: onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.query(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if f.all {
				return allLogs(cmd, &r.ask, args[0], q, f.follow)
			}
			_, t, err := r.target(cmd.Context(), args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return printLog(cmd.Context(), &r.ask, t, q, cmd.OutOrStdout())
		},
	}
	r.flags(cmd)
	s := cmd.Flags()
	s.BoolVarP(&f.follow, "follow", "f", false, "go on with what is logged from now on, until the container ends")
	s.BoolVarP(&f.previous, "previous", "p", false, "the log of the container's run before this one")
	s.Int64Var(&f.tail, "tail", -1, "number of `lines` from the end; -1 for all")
	s.DurationVar(&f.since, "since", 0, "only what is younger than that, as 5s, 2m or 3h")
	s.StringVar(&f.sinceTime, "since-time", "", "only what was logged since that `time` (RFC 3339)")
	s.BoolVar(&f.timestamps, "timestamps", false, "begin each line with its time")
	s.Int64Var(&f.limit, "limit-bytes", 0, "number of `bytes` to print at most")
	s.BoolVar(&f.all, "all-containers", false, "of all containers of the pod, each line with the container's name")
	cmd.MarkFlagsMutuallyExclusive("since", "since-time")
	cmd.MarkFlagsMutuallyExclusive("all-containers", "container")
	return cmd
}

// query is the parameters that ask for that.
func (f *logFlags) query(changed func(flag string) bool) (url.Values, error) {
	q := url.Values{}
	for name, on := range map[string]bool{"follow": f.follow, "previous": f.previous, "timestamps": f.timestamps} {
		if on {
			q.Set(name, "true")
		}
	}
	if f.tail < -1 {
		return nil, fmt.Errorf("--tail %d: use a number of lines, or -1 for all", f.tail)
	}
	if f.tail >= 0 {
		q.Set("tailLines", strconv.FormatInt(f.tail, 10))
	}
	if changed("since") {
		if f.since <= 0 {
			return nil, fmt.Errorf("--since %s: use a duration above 0", f.since)
		}
		q.Set("sinceSeconds", strconv.FormatInt(int64((f.since+time.Second-1)/time.Second), 10))
	}
	if f.sinceTime != "" {
		if _, err := time.Parse(time.RFC3339, f.sinceTime); err != nil {
			return nil, fmt.Errorf("--since-time %q: use a time such as 2006-01-02T15:04:05Z", f.sinceTime)
		}
		q.Set("sinceTime", f.sinceTime)
	}
	if changed("limit-bytes") {
		if f.limit <= 0 {
			return nil, fmt.Errorf("--limit-bytes %d: use a number above 0", f.limit)
		}
		q.Set("limitBytes", strconv.FormatInt(f.limit, 10))
	}
	return q, nil
}

func printLog(ctx context.Context, a *ask, t remote.Target, q url.Values, to io.Writer) error {
	log, err := a.remote().Logs(ctx, t, q)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(to, log)
	return brokenOff(ctx, t, err)
}

// brokenOff is how a log ended: the user may end it at any time, the agent may not.
func brokenOff(ctx context.Context, t remote.Target, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the log of container %s was broken off: %w", t.Container, err)
}

// allLogs prints the logs of all containers: one after the other, or with
// follow side by side. What cannot be printed keeps nobody else back.
func allLogs(cmd *cobra.Command, a *ask, ref string, q url.Values, follow bool) error {
	p, t, err := a.pod(cmd.Context(), ref)
	if err != nil {
		return err
	}
	lines := &prefixed{to: cmd.OutOrStdout()}
	g := pool.New().WithErrors()
	if !follow {
		g = g.WithMaxGoroutines(1)
	}
	for _, name := range containers(p) {
		one := t
		one.Container = name
		g.Go(func() error { return lines.copy(cmd.Context(), a, one, q) })
	}
	return g.Wait()
}

// prefixed writes whole lines of several logs.
type prefixed struct {
	mu sync.Mutex
	to io.Writer
}

func (p *prefixed) copy(ctx context.Context, a *ask, t remote.Target, q url.Values) error {
	log, err := a.remote().Logs(ctx, t, q)
	if err != nil {
		return err
	}
	defer log.Close()
	for r := bufio.NewReader(log); ; {
		line, err := r.ReadString('\n')
		if line != "" {
			if werr := p.line(t, line); werr != nil {
				return werr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return brokenOff(ctx, t, err)
		}
	}
}

func (p *prefixed) line(t remote.Target, line string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.to, "[pod/%s/%s] %s", t.Pod, t.Container, line)
	return err
}
