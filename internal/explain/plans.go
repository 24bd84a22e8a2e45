package explain

import (
	"fmt"
	"strings"
)

// PlansSchema names the JSON form of Plans.
const PlansSchema = "flowlet.dev/plans/v1"

// Plans is what a changed manifest would make happen to all pods that it is about.
type Plans struct {
	Schema string    `json:"schema"`
	Notes  []string  `json:"notes,omitempty"` // what the user should know besides
	Pods   []PodPlan `json:"pods"`            // the one that ends first
}

// PodPlan is the plan of one pod.
type PodPlan struct {
	Pod    string `json:"pod"` // namespace/name
	UID    string `json:"uid"`
	Change string `json:"change"` // starts, ends, goes on
	Plan   Plan   `json:"plan"`
}

// Text renders the plans.
func (p Plans) Text() string {
	var b strings.Builder
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	for i, pp := range p.Pods {
		if i > 0 || len(p.Notes) > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "Pod %s (UID %s) %s\n\n", pp.Pod, pp.UID, pp.Change)
		b.WriteString(pp.Plan.Text())
	}
	return b.String()
}
