package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flowlet/flowlet/internal/server"
)

func getCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show pods, one pod, the node, or the policy", Args: cobra.ArbitraryArgs, RunE: help}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if c == cmd && c.Flags().NArg() > 0 { // a flag of what is shown behind a word that is nothing to show
			return fmt.Errorf("unknown command %q for %q: there are pods, pod, node and policy", c.Flags().Arg(0), c.CommandPath())
		}
		return err
	})
	cmd.AddCommand(getPods(), getPod(), getNode(), getPolicy())
	return cmd
}

func getPods() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "pods", Aliases: []string{"po"}, Short: "List all pods, and what is wrong with manifests", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pods, err := a.client().Pods(cmd.Context())
			if err != nil {
				return err
			}
			files, err := a.client().Files(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), pods, func() string { return podTable(time.Now(), pods) + notes(pods, files) })
		},
	}
	a.flags(cmd, "json (a v1.PodList)")
	return cmd
}

func podTable(now time.Time, pods v1.PodList) string {
	if len(pods.Items) == 0 {
		return "No pods.\n"
	}
	return table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "NAMESPACE\tNAME\tREADY\tSTATUS\tRESTARTS\tAGE\tIP")
		for i := range pods.Items {
			p := &pods.Items[i]
			ready, restarts := server.Counts(p)
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", p.Namespace, p.Name, ready, server.Word(p), restarts, age(now, p), or(p.Status.PodIP, "<none>"))
		}
	})
}

func table(fill func(w *tabwriter.Writer)) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fill(w)
	_ = w.Flush()
	return b.String()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func age(now time.Time, p *v1.Pod) string {
	if p.Status.StartTime == nil {
		return "<none>"
	}
	return duration.HumanDuration(now.Sub(p.Status.StartTime.Time))
}

func getPod() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "pod POD", Short: "Show one pod with its events", Args: onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.client().Pod(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), d.Pod, func() string { return describe(time.Now(), d) })
		},
	}
	a.flags(cmd, "json (a v1.Pod)")
	return cmd
}

func getNode() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "node", Short: "Show the agent, its runtime and its health", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := a.client().Node(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), n, func() string { return nodeText(time.Now(), n) })
		},
	}
	a.flags(cmd, "json")
	return cmd
}

func getPolicy() *cobra.Command {
	var a ask
	cmd := &cobra.Command{
		Use: "policy", Short: "Show the classes with their queues", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.client().Policy(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), p, func() string { return policyText(p) })
		},
	}
	a.flags(cmd, "json")
	return cmd
}

func policyText(p server.Policy) string {
	return table(func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "CLASS\tSLOTS\tORDER\tDEADLINE\tBACK-OFF\tRUNNING\tWAITING\tLOST")
		for _, c := range p.Classes {
			slots := "no limit"
			if c.Slots > 0 {
				slots = fmt.Sprint(c.Slots)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", or(c.Name, "(others)"), slots, c.Order, or(c.Deadline, "none"),
				or(c.Backoff, "none"), c.Running, c.Waiting, c.Lost)
		}
	})
}
