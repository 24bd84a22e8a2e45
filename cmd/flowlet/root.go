package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/server"
)

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "flowlet",
		Short:         "A Kubernetes node agent in which everything that is done for a pod is a stage in the pod's graph",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          help,
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(runCommand(), getCommand(), whyCommand(), dagCommand(), traceCommand(), journalCommand(), planCommand(), uiCommand(),
		logsCommand(), execCommand(), attachCommand(), portForwardCommand(), simCommand(), benchCommand(), versionCommand())
	return cmd
}

// help is what a command does that only has subcommands. A word that is none
// of them is an error.
func help(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q: see `%s --help`", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return cmd.Help()
}

// onePod takes the one argument that names a pod.
func onePod(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s needs one POD: NAMESPACE/NAME, NAME (namespace default) or a UID; %d arguments were given", cmd.CommandPath(), len(args))
}

// ask are the flags of commands that ask a running agent.
type ask struct {
	root   string
	output string
}

func (a *ask) flags(cmd *cobra.Command, outputs string) {
	a.rootFlag(cmd)
	cmd.Flags().StringVarP(&a.output, "output", "o", "", "output: "+outputs+"; text when empty")
}

func (a *ask) rootFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.root, "root-dir", config.DefaultRootDir, "root directory of the agent that is asked")
}

func (a *ask) client() *server.Client { return server.NewClient(a.root) }

// print writes v as JSON, or text.
func (a *ask) print(w io.Writer, v any, text func() string) error {
	switch a.output {
	case "", "text":
		_, err := io.WriteString(w, text())
		return err
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	return fmt.Errorf("-o %s: unknown output, use text or json", a.output)
}
