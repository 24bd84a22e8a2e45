package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func portForwardCommand() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "port-forward POD [LOCAL:]REMOTE...", Short: "Forward ports of this machine to ports of a pod, until interrupted",
		Long: "Listens on 127.0.0.1 and ::1 and forwards what connects to the pod. With one number it is the port on both sides;\n:REMOTE takes any free local port.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("flowlet port-forward needs one POD and at least one port, as 8080 or 8080:80")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, err := a.pod(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.remote().Forward(cmd.Context(), t, args[1:], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	a.rootFlag(cmd)
	return cmd
}
