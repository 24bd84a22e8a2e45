package explain_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
)

func TestDraw(t *testing.T) {
	for _, f := range []explain.Format{explain.Text, explain.Mermaid, explain.Dot, explain.JSON} {
		t.Run(string(f), func(t *testing.T) {
			out, err := explain.Draw(at(90*time.Second), explain.FromGraph(webGraph(), webMemo()), f)
			require.NoError(t, err)
			golden(t, "dag."+string(f), out)
			if f == explain.Text {
				fits80(t, out)
			}
			if f == explain.JSON {
				var g explain.Graph
				require.NoError(t, json.Unmarshal([]byte(out), &g))
				require.Equal(t, explain.GraphSchema, g.Schema)
			}
		})
	}
	_, err := explain.Draw(t0, nil, "svg")
	require.ErrorContains(t, err, "want text, mermaid, dot, svg or json")
}

func TestDrawGraphOfAManifest(t *testing.T) {
	out, err := explain.Draw(t0, explain.FromGraph(webGraph(), nil), explain.Text)
	require.NoError(t, err)
	golden(t, "dag-new.text", out)
	fits80(t, out)
}

func TestPlan(t *testing.T) {
	m := webMemo()
	m[id("image", "web")] = dag.Entry{Key: dag.Key{Do: "pull registry.example/team/web:2.4.0", In: 7}, State: dag.Running, Since: at(80 * time.Second), Attempt: 1, Class: "image/registry.example"}
	m[id("volume", "settings")] = dag.Entry{Key: do("mount config map web-settings"), State: dag.Failed, Since: at(80 * time.Second), Until: at(95 * time.Second), Attempt: 1, Err: errPull}
	p := explain.PlanOf(at(90*time.Second), m, webGraph())
	require.Equal(t, explain.PlanSchema, p.Schema)
	golden(t, "plan.txt", p.Text())
	fits80(t, p.Text())

	fresh := explain.PlanOf(t0, nil, webGraph())
	golden(t, "plan-new.txt", fresh.Text())
	fits80(t, fresh.Text())

	empty := explain.PlanOf(t0, nil, &dag.Graph[int]{})
	require.Equal(t, "Nothing to do.\n", empty.Text())
}
