package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/internal/config"
)

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the node agent",
		Long: "Run the node agent until SIGINT or SIGTERM. All flags of kubelet " + app.KubernetesVersion +
			" are understood. Without --kubeconfig it is stand-alone: it runs the manifests below staticPodPath.",
		Args: cobra.NoArgs,
	}
	flags := config.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.Version != "" {
			printVersion(cmd.OutOrStdout())
			return nil
		}
		c, err := config.Load(flags)
		if err != nil {
			return err
		}
		return app.Run(cmd.Context(), c, logger(c))
	}
	return cmd
}

// logger logs to stderr as the configuration says: text or json, and debug
// messages from verbosity 4 on, as in Kubernetes components.
func logger(c *config.Config) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.Kubelet.Logging.Verbosity >= 4 {
		o.Level = slog.LevelDebug
	}
	if c.Kubelet.Logging.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { printVersion(cmd.OutOrStdout()) },
	}
}

func printVersion(w interface{ Write([]byte) (int, error) }) {
	fmt.Fprintf(w, "flowlet %s (Kubernetes %s)\n", app.Version(), app.KubernetesVersion)
}
