package evict

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flowlet/flowlet/internal/usage"
)

// shortage is the message of a pod that is evicted because the node runs short.
func shortage(d Due, c Candidate) string {
	what := d.Signal.about().resource
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ",
		what, amount(what, d.Value.Of(d.Seen.Capacity)), amount(what, d.Seen.Available))
	if c.Used == nil {
		return b.String()
	}
	for i := range c.Pod.Spec.Containers {
		spec := &c.Pod.Spec.Containers[i]
		request := spec.Resources.Requests[what]
		for _, used := range c.Used.Containers {
			if take, ok := taken(what, used); ok && used.Name == spec.Name && take > request.Value() {
				fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %s. ",
					spec.Name, amount(what, take), request.String(), what)
			}
		}
	}
	return b.String()
}

func taken(what v1.ResourceName, c usage.Container) (int64, bool) {
	switch what {
	case v1.ResourceMemory:
		return c.Memory, true
	case v1.ResourceEphemeralStorage:
		return c.Writable.Bytes + c.Logs.Bytes, true
	}
	return 0, false
}

// amount writes a number as the ecosystem does: bytes with binary units.
func amount(what v1.ResourceName, n int64) string {
	format := resource.BinarySI
	if what == resourceInodes || what == resourcePIDs {
		format = resource.DecimalSI
	}
	return resource.NewQuantity(n, format).String()
}
