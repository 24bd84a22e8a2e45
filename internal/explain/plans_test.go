package explain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowlet/flowlet/internal/explain"
)

func TestPlansText(t *testing.T) {
	p := explain.Plans{
		Notes: []string{"it is not read"},
		Pods: []explain.PodPlan{
			{Pod: "default/web-n", UID: "u1", Change: "ends", Plan: explain.Plan{Start: []explain.Stage{{ID: "stop[a]", Do: "stop c1"}}, Same: 2}},
			{Pod: "default/web-n", UID: "u2", Change: "starts"},
		},
	}
	want := `Note: it is not read

Pod default/web-n (UID u1) ends

Would start now (1)
  stop[a]                  stop c1

2 stages have nothing to do.

Pod default/web-n (UID u2) starts

Nothing to do.
`
	if diff := cmp.Diff(want, p.Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
