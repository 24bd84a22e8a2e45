package bench_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/bench"
)

func TestPercentileIsAValueThatWasSeen(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 20: 1, 21: 2, 50: 3, 99: 5, 100: 5} {
		require.InDelta(t, want, bench.Percentile(values, p), 0, "percentile %v", p)
	}
	require.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the values keep their order")
	require.True(t, math.IsNaN(bench.Percentile(nil, 50)))
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2, bench.Median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, bench.Median([]float64{4, 1, 2, 3}), 0)
	require.True(t, math.IsNaN(bench.Median(nil)))
}

func TestRatioOfWithoutARatio(t *testing.T) {
	for name, b := range map[string][]float64{"no values": nil, "zero": {0, 0}} {
		r := bench.RatioOf([]float64{1, 2}, b, 1)
		require.True(t, math.IsNaN(r.Value) && math.IsNaN(r.Low) && math.IsNaN(r.High), name)
	}
}

func TestRatioOfLiesWithinTheExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SliceOfN(rapid.Float64Range(0.1, 1000), 1, 9)
		a, b := side.Draw(t, "a"), side.Draw(t, "b")
		r := bench.RatioOf(a, b, 7)
		least := bench.Percentile(a, 0) / bench.Percentile(b, 100)
		most := bench.Percentile(a, 100) / bench.Percentile(b, 0)
		require.LessOrEqual(t, r.Low, r.High)
		require.GreaterOrEqual(t, r.Low, least*(1-1e-9))
		require.LessOrEqual(t, r.High, most*(1+1e-9))
		require.Equal(t, r, bench.RatioOf(a, b, 7), "the same seed gives the same interval")
	})
}
