package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
)

func portForwardCommand() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "port-forward POD [LOCAL:]REMOTE...", Short: "Forward ports of this machine to ports of a pod, until interrupted",
		Long: "Listens on 127.0.0.1 and ::1 and forwards what connects to the pod. With one number it is the port on both sides;\n:REMOTE takes any free local port. REMOTE may be the name of a port of a container.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("flowlet port-forward needs one POD and at least one port, as 8080 or 8080:80")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, t, err := a.pod(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			ports, err := numbered(p, args[1:])
			if err != nil {
				return err
			}
			return a.remote().Forward(cmd.Context(), t, ports, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	a.rootFlag(cmd)
	return cmd
}

// numbered puts the numbers of named ports in the place of their names. With a name alone the number is the local port too.
func numbered(p *v1.Pod, ports []string) ([]string, error) {
	named := map[string]string{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, port := range c.Ports {
			if port.Name != "" {
				named[port.Name] = strconv.Itoa(int(port.ContainerPort))
			}
		}
	}
	out := make([]string, len(ports))
	for i, s := range ports {
		local, remote, both := strings.Cut(s, ":")
		if !both {
			remote = s
		}
		if _, err := strconv.Atoi(remote); err != nil && remote != "" {
			number, ok := named[remote]
			if !ok {
				return nil, fmt.Errorf("port %q: no container of pod %s/%s has a port of that name; it has %q", s, p.Namespace, p.Name, slices.Sorted(maps.Keys(named)))
			}
			remote = number
		}
		if out[i] = remote; both {
			out[i] = local + ":" + remote
		}
	}
	return out, nil
}
