package archtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules themselves are worth a test: a pattern that matches nothing would make them silently true.
func TestLayerOf(t *testing.T) {
	for path, want := range map[string]string{
		"cmd/flowlet":           "command",
		"cmd/flowlet/app":       "composition root",
		"stages":                "outer",
		"stages/graph":          "domain and clients",
		"stages/image":          "domain and clients",
		"sources/pleg":          "outer",
		"cri/crisim":            "domain and clients",
		"dag":                   "engines",
		"pipeline/pipelinetest": "engines",
		"internal/pod":          "words",
		"test/e2e":              "harness",
	} {
		require.Equal(t, want, layers[layerOf(path)].name, path)
	}
	require.Equal(t, -1, layerOf("pkg/util"))
	require.Equal(t, -1, layerOf("internal/common"))
}

func TestSiblings(t *testing.T) {
	require.True(t, siblingAllowed("stages/graph", "stages/image"))
	require.True(t, siblingAllowed("cri/crisim", "cri"))
	require.True(t, siblingAllowed("internal/server", "internal/server/page"))
	require.False(t, siblingAllowed("stages/image", "stages/graph"))
	require.False(t, siblingAllowed("stages/image", "stages/volume"))
	require.False(t, siblingAllowed("dag", "pipeline"))
	require.False(t, siblingAllowed("cri", "internal/podstore"))
}

func TestBanned(t *testing.T) {
	require.True(t, banned(bans[0], "k8s.io/api/core/v1"))
	require.True(t, banned(bans[0], "internal/pod"))
	require.True(t, banned(bans[3], "go.opentelemetry.io/otel"))
	require.False(t, banned(bans[0], "golang.org/x/sync/errgroup"))
	require.False(t, banned(bans[2], "tracing/other"))
}
