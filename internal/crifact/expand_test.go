package crifact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/crifact"
)

func TestExpand(t *testing.T) {
	known := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}
	lookup := func(n string) (string, bool) { v, ok := known[n]; return v, ok }
	for text, want := range map[string]string{
		"":                  "",
		"plain":             "plain",
		"$(A)":              "1",
		"x$(A)y$(A)":        "x1y1",
		"$(B)":              "$(A)", // values are not expanded again
		"$(EMPTY)|":         "|",
		"$(NO)":             "$(NO)",
		"$$(A)":             "$(A)",
		"$$$(A)":            "$1",
		"$$$$(A)":           "$$(A)",
		"$$$$$$$(A)":        "$$$1",
		"$":                 "$",
		"$$":                "$",
		"$A ${A}":           "$A ${A}",
		"$(A":               "$(A",
		"$(A$(A)":           "$(A$(A)",
		"$()":               "$()",
		"($(A))":            "(1)",
		"cost: 5$ for $(A)": "cost: 5$ for 1",
		"$(A)$":             "1$",
	} {
		require.Equal(t, want, crifact.Expand(text, lookup), text)
	}
}

func TestExpandLeavesTextWithoutReferencesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z(){} ]*`).Draw(t, "text")
		require.Equal(t, text, crifact.Expand(text, func(string) (string, bool) { return "!", true }))
		escaped := strings.ReplaceAll(rapid.StringMatching(`[a$()]*`).Draw(t, "any"), "$", "$$")
		require.Equal(t, strings.ReplaceAll(escaped, "$$", "$"), crifact.Expand(escaped, func(string) (string, bool) { return "!", true }))
	})
}
