package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/internal/server/ui"
)

func uiCommand() *cobra.Command {
	var a ask
	var port int
	cmd := &cobra.Command{
		Use: "ui", Short: "Show pods, graphs, waterfalls, the node and its queues in a browser", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := a.client().Node(cmd.Context()); err != nil {
				return err
			}
			var lc net.ListenConfig
			l, err := lc.Listen(cmd.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("opening a port for the page: %w", err)
			}
			defer l.Close()
			gate := ui.NewGate(l.Addr().String(), ui.Proxy(a.client()))
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", gate.URL())
			fmt.Fprintln(cmd.ErrOrStderr(), "The address opens the page once, in one browser. Ctrl-C ends it.")
			return server.Serve(cmd.Context(), l, gate)
		},
	}
	a.rootFlag(cmd)
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1; 0: a free one")
	return cmd
}
