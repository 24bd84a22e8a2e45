package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Counts are numbers of the whole node at one moment.
type Counts struct {
	RunningPods int            // with a ready sandbox
	Containers  map[string]int // by state: created, running, exited, unknown
	Desired     Split
	Active      Split // not terminal
	Mirror      int   // mirror pods
	Orphaned    int   // pods in the runtime that no configured source wants
}

// Split counts pods by where they come from.
type Split struct{ API, Static int }

// Node is a collector of Counts.
type Node struct {
	counts func() Counts
	name   string

	nodeName, pods, containers, desired, active, mirror, orphaned *prometheus.Desc
}

var _ prometheus.Collector = (*Node)(nil)

// NewNode registers the numbers of a node. counts is called at each scrape,
// possibly concurrently.
func NewNode(r prometheus.Registerer, name string, counts func() Counts) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return register(r, &Node{
		counts: counts, name: name,
		nodeName:   desc("kubelet_node_name", "The node's name. The count is always 1.", "node"),
		pods:       desc("kubelet_running_pods", "Number of pods that have a running pod sandbox."),
		containers: desc("kubelet_running_containers", "Number of containers by state.", "container_state"),
		desired:    desc("kubelet_desired_pods", "The number of pods the agent is being instructed to run; static is \"true\" for static pods.", "static"),
		active:     desc("kubelet_active_pods", "The number of pods the agent considers active; static is \"true\" for static pods.", "static"),
		mirror:     desc("kubelet_mirror_pods", "The number of mirror pods the agent will try to create (one per admitted static pod)."),
		orphaned:   desc("flowlet_left_alone_pods", "Pods in the runtime that belong to no configured source and are left alone."),
	})
}

// Describe implements prometheus.Collector.
func (n *Node) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{n.nodeName, n.pods, n.containers, n.desired, n.active, n.mirror, n.orphaned} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (n *Node) Collect(out chan<- prometheus.Metric) {
	c := n.counts()
	set := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	set(n.nodeName, 1, n.name)
	set(n.pods, c.RunningPods)
	for state, v := range c.Containers {
		set(n.containers, v, state)
	}
	set(n.desired, c.Desired.API, "")
	set(n.desired, c.Desired.Static, "true")
	set(n.active, c.Active.API, "")
	set(n.active, c.Active.Static, "true")
	set(n.mirror, c.Mirror)
	set(n.orphaned, c.Orphaned)
}
