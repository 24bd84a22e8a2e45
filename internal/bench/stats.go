package bench

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Percentile returns the p-th percentile (0 to 100) of some values by the
// nearest rank: a value that was really seen. It is NaN without values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the middle of some values, the mean of the middle two when
// their number is even. It is NaN without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	m := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[m]
	}
	return (sorted[m-1] + sorted[m]) / 2
}

// Ratio is a ratio of two medians with its 95 % bootstrap interval.
type Ratio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// resamples is how often both sides are drawn anew for an interval.
const resamples = 2000

// RatioOf returns Median(a)/Median(b). The same values and seed give the same
// interval. It is all NaN when a side has no values, or b's median is 0.
func RatioOf(a, b []float64, seed uint64) Ratio {
	value := Median(a) / Median(b)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return Ratio{math.NaN(), math.NaN(), math.NaN()}
	}
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable on purpose
	drawn := make([]float64, 0, resamples)
	for range resamples {
		if v := Median(draw(r, a)) / Median(draw(r, b)); !math.IsNaN(v) && !math.IsInf(v, 0) {
			drawn = append(drawn, v)
		}
	}
	return Ratio{Value: value, Low: Percentile(drawn, 2.5), High: Percentile(drawn, 97.5)}
}

func draw(r *rand.Rand, values []float64) []float64 {
	out := make([]float64, len(values))
	for i := range out {
		out[i] = values[r.IntN(len(values))]
	}
	return out
}
