package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/internal/explain"
)

// blocked is the exit code of `why` for a pod that is blocked.
const blocked exitCode = 3

func whyCommand() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "why POD | why node", Short: "Say why a pod, or all of the node, is not further: exit status 0 if nothing blocks it, 3 if something does",
		Args: onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "node" { // a pod of that name is default/node
				return whyNode(cmd, &a)
			}
			r, err := a.client().Why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.print(cmd.OutOrStdout(), r, r.Text); err != nil {
				return err
			}
			if len(r.Blocking) > 0 {
				return blocked
			}
			return nil
		},
	}
	a.flags(cmd, "json")
	return cmd
}

func whyNode(cmd *cobra.Command, a *ask) error {
	r, err := a.client().WhyNode(cmd.Context())
	if err != nil {
		return err
	}
	if err := a.print(cmd.OutOrStdout(), r, r.Text); err != nil {
		return err
	}
	if len(r.Blocking) > 0 {
		return blocked
	}
	return nil
}

func journalCommand() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "journal POD", Short: "Show what happened to a pod: events, decisions and their effects, oldest first", Args: onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.client().Journal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), l, l.Text)
		},
	}
	a.flags(cmd, "json")
	return cmd
}

func dagCommand() *cobra.Command {
	var a ask
	var manifest string
	cmd := &cobra.Command{
		Use: "dag POD | dag -f MANIFEST", Short: "Draw a pod's graph, live or as a manifest would have it", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, warnings, err := drawing(cmd.Context(), &a, manifest, args)
			if err != nil {
				return err
			}
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "Note: "+w)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), out)
			return err
		},
	}
	a.flags(cmd, "text, mermaid, dot, svg or json")
	cmd.Flags().StringVarP(&manifest, "filename", "f", "", "manifest whose graph is drawn; no agent is asked")
	return cmd
}

func drawing(ctx context.Context, a *ask, manifest string, args []string) (string, []string, error) {
	format := explain.Format(a.output)
	switch {
	case manifest != "" && len(args) == 0:
		return app.DrawManifest(ctx, manifest, format)
	case manifest == "" && len(args) == 1:
		out, err := a.client().Dag(ctx, args[0], format)
		return out, nil, err
	}
	return "", nil, errors.New("dag takes either a POD or -f MANIFEST")
}

func traceCommand() *cobra.Command {
	var a ask
	var start, stop, restart bool
	cmd := &cobra.Command{
		Use: "trace POD", Short: "Show where the time of a pod's start, stop or restart went", Args: onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := "pod.start"
			switch {
			case stop:
				kind = "pod.delete"
			case restart:
				kind = "container.restart"
			}
			t, err := a.client().Trace(cmd.Context(), args[0], kind)
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), t, t.Text)
		},
	}
	a.flags(cmd, "json")
	cmd.Flags().BoolVar(&start, "start", false, "the last start (default)")
	cmd.Flags().BoolVar(&stop, "stop", false, "the teardown")
	cmd.Flags().BoolVar(&restart, "restart", false, "the last restart of a container")
	cmd.MarkFlagsMutuallyExclusive("start", "stop", "restart")
	return cmd
}
