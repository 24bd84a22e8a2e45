package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUIWithoutAnAgentSaysSoAtOnce(t *testing.T) {
	out, err := flowlet(t, "ui", "--root-dir="+t.TempDir())
	require.ErrorContains(t, err, "no agent answers on ")
	require.Empty(t, out, "no address that leads nowhere")
}
