package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/manifest"
)

// change is what a plan is asked about: a manifest as it is to be, or its removal.
type change struct{ set, remove, at string }

func planCommand() *cobra.Command {
	var a ask
	var c change
	cmd := &cobra.Command{
		Use: "plan -f MANIFEST [--at PATH] | plan --remove MANIFEST", Short: "Say what a changed or removed manifest would start and stop, without doing it",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := c.plan(cmd.Context(), &a)
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), p, p.Text)
		},
	}
	a.flags(cmd, "json")
	cmd.Flags().StringVarP(&c.set, "filename", "f", "", "manifest as it is to be")
	cmd.Flags().StringVar(&c.at, "at", "", "path where that manifest is to stand, when it is elsewhere now")
	cmd.Flags().StringVar(&c.remove, "remove", "", "path of a manifest that is to be removed")
	cmd.MarkFlagsMutuallyExclusive("filename", "remove")
	cmd.MarkFlagsMutuallyExclusive("at", "remove")
	return cmd
}

func (c *change) plan(ctx context.Context, a *ask) (explain.Plans, error) {
	if c.set == "" && c.remove == "" {
		return explain.Plans{}, errors.New("plan needs -f MANIFEST, or --remove MANIFEST")
	}
	if c.remove != "" {
		path, err := filepath.Abs(c.remove)
		if err != nil {
			return explain.Plans{}, err
		}
		return a.client().PlanRemoval(ctx, path)
	}
	at := c.at
	if at == "" {
		at = c.set
	}
	path, err := filepath.Abs(at)
	if err != nil {
		return explain.Plans{}, err
	}
	data, err := read(c.set)
	if err != nil {
		return explain.Plans{}, fmt.Errorf("reading the manifest: %w", err)
	}
	plans, err := a.client().Plan(ctx, path, data)
	if err != nil && c.at != "" {
		err = fmt.Errorf("%s, as it would stand at --at: %w", c.set, err)
	}
	return plans, err
}

// read reads a manifest, and of one that is too large only enough to say so.
func read(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, manifest.MaxBytes+1))
}
