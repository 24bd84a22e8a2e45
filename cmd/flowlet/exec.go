package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// streamFlags say how the user's terminal is connected.
type streamFlags struct{ stdin, tty bool }

func (s *streamFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.stdin, "stdin", "i", false, "pass standard input on")
	cmd.Flags().BoolVarP(&s.tty, "tty", "t", false, "standard input is a terminal")
}

func execCommand() *cobra.Command {
	var r reach
	var s streamFlags
	cmd := &cobra.Command{
		Use: "exec POD -- COMMAND [ARGUMENTS]", Short: "Run a command in a container; its exit status is that of the command",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return errors.New("flowlet exec needs one POD and, after --, a command")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, err := r.target(cmd.Context(), args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return s.with(cmd, func(ctx context.Context, o remotecommand.StreamOptions) error {
				return r.remote().Exec(ctx, t, args[1:], o)
			})
		},
	}
	r.flags(cmd)
	s.flags(cmd)
	return cmd
}

func attachCommand() *cobra.Command {
	var r reach
	var s streamFlags
	cmd := &cobra.Command{
		Use: "attach POD", Short: "Connect to the process of a container", Args: onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, t, err := r.target(cmd.Context(), args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := s.fit(p, t.Container, cmd.ErrOrStderr()); err != nil {
				return err
			}
			return s.with(cmd, func(ctx context.Context, o remotecommand.StreamOptions) error {
				return r.remote().Attach(ctx, t, o)
			})
		},
	}
	r.flags(cmd)
	s.flags(cmd)
	return cmd
}

// fit makes the flags what the container was started with: an attach cannot
// change it.
func (s *streamFlags) fit(p *v1.Pod, container string, notes io.Writer) error {
	c, ok := containerOf(p, container)
	if !ok {
		return nil // the agent decides
	}
	if s.stdin && !c.Stdin {
		return fmt.Errorf("container %s takes no input: its spec would need stdin: true", container)
	}
	if s.tty && !c.TTY {
		fmt.Fprintf(notes, "container %s has no terminal; going on without\n", container)
	}
	s.tty = c.TTY
	return nil
}

func containerOf(p *v1.Pod, name string) (v1.Container, bool) {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			if c.Name == name {
				return c, true
			}
		}
	}
	for _, c := range p.Spec.EphemeralContainers {
		if c.Name == name {
			return v1.Container(c.EphemeralContainerCommon), true
		}
	}
	return v1.Container{}, false
}

// with connects the process's own streams, and makes the exit code of a
// command that of flowlet.
func (s *streamFlags) with(cmd *cobra.Command, stream func(context.Context, remotecommand.StreamOptions) error) error {
	ctx := cmd.Context()
	o := remotecommand.StreamOptions{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(), Tty: s.tty}
	if s.stdin {
		o.Stdin = cmd.InOrStdin()
	}
	if o.Tty && s.stdin {
		t, err := openTerminal(os.Stdin)
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "standard input is not a terminal; going on without")
			o.Tty = false
		} else {
			defer t.close()
			o.TerminalSizeQueue = t
		}
	}
	err := stream(ctx, o)
	if code, ok := errors.AsType[exec.CodeExitError](err); ok {
		return exitCode(code.ExitStatus())
	}
	if err != nil && ctx.Err() != nil {
		return interrupted
	}
	return err
}

// interrupted is the exit code of a command that the user ended.
const interrupted exitCode = 130
