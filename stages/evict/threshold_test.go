package evict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/stages/evict"
)

func TestThresholds(t *testing.T) {
	got, err := evict.Settings{
		Hard: map[string]string{
			"memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "0%", "pid.available": "100%", "containerfs.available": "5%",
		},
		Soft:           map[string]string{"memory.available": " 1Gi"},
		SoftGrace:      map[string]string{"memory.available": "90s"},
		MinimumReclaim: map[string]string{"memory.available": "0", "nodefs.available": "500Mi"},
		Allocatable:    true,
	}.Thresholds()
	require.NoError(t, err)
	var lines []string
	for _, th := range got {
		line := string(th.Signal) + " " + time.Duration(th.Value.Of(1<<40)).String()
		if th.Soft {
			line += " soft " + th.Grace.String()
		}
		lines = append(lines, line)
	}
	require.Equal(t, []string{
		"memory.available " + time.Duration(100<<20).String(),
		"nodefs.available " + time.Duration((1<<40)/10).String(),
		"memory.available " + time.Duration(1<<30).String() + " soft 1m30s",
		"allocatableMemory.available " + time.Duration(100<<20).String(),
	}, lines)
	require.EqualValues(t, 500<<20, got[1].Reclaim.Of(1<<40))
}

func TestThresholdsThatCannotBe(t *testing.T) {
	entry := func(k, v string) map[string]string { return map[string]string{k: v} }
	for name, tc := range map[string]struct {
		settings evict.Settings
		says     string
	}{
		"unknown signal":        {evict.Settings{Hard: entry("cpu.available", "1")}, "evictionHard[cpu.available]: there is no such signal; there are memory.available"},
		"no quantity":           {evict.Settings{Hard: entry("memory.available", "lots")}, `evictionHard[memory.available]: "lots" is neither a quantity`},
		"negative":              {evict.Settings{Hard: entry("memory.available", "-1Gi")}, "must be more than 0"},
		"nothing":               {evict.Settings{Hard: entry("memory.available", "0")}, "must be more than 0"},
		"too many percent":      {evict.Settings{Hard: entry("memory.available", "101%")}, "is not between 0% and 100%"},
		"no number of percent":  {evict.Settings{Hard: entry("memory.available", "NaN%")}, "is not between 0% and 100%"},
		"soft without grace":    {evict.Settings{Soft: entry("memory.available", "1Gi")}, "evictionSoft[memory.available]: needs evictionSoftGracePeriod[memory.available]"},
		"grace is no duration":  {evict.Settings{Soft: entry("memory.available", "1Gi"), SoftGrace: entry("memory.available", "soon")}, `evictionSoftGracePeriod[memory.available]: "soon" is no duration`},
		"grace is negative":     {evict.Settings{Soft: entry("memory.available", "1Gi"), SoftGrace: entry("memory.available", "-1s")}, "is no duration of 0 or more"},
		"grace of what is not":  {evict.Settings{SoftGrace: entry("disk", "1s")}, "evictionSoftGracePeriod[disk]: there is no such signal"},
		"reclaim of what not":   {evict.Settings{MinimumReclaim: entry("disk", "1Gi")}, "evictionMinimumReclaim[disk]: there is no such signal"},
		"reclaim less than 0":   {evict.Settings{MinimumReclaim: entry("memory.available", "-1")}, "evictionMinimumReclaim[memory.available]"},
		"every mistake is told": {evict.Settings{Hard: map[string]string{"a": "1", "b": "2"}}, "evictionHard[b]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.settings.Thresholds()
			require.ErrorContains(t, err, tc.says)
		})
	}
}
