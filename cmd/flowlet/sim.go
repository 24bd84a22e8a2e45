package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/cri/crisim"
)

func simCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "sim --listen unix://PATH", Short: "Serve a simulated container runtime for any CRI client", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, ok := strings.CutPrefix(listen, "unix://")
			if !ok || !filepath.IsAbs(path) {
				return errors.New("--listen: use unix:// and an absolute path")
			}
			l, err := listenUnix(path)
			if err != nil {
				return err
			}
			streams, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "simulated container runtime on %s; nothing really runs\n", listen)
			sim := crisim.New(crisim.Config{})
			p := pool.New().WithContext(cmd.Context()).WithCancelOnError()
			p.Go(func(ctx context.Context) error { return sim.Serve(ctx, l) })
			p.Go(func(ctx context.Context) error { return sim.ServeStreams(ctx, streams) })
			return p.Wait()
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "socket to serve on, as unix:///run/sim.sock")
	return cmd
}

// listenUnix replaces a socket on which nobody answers.
func listenUnix(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("--listen: somebody already answers on %s", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("--listen: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return l, nil
}
