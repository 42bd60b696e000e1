package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ebtrain/collective"
	"ebtrain/collective/cost"
)

// drawn are what f makes of so many draws of m.
func drawn(m cost.Model, n int, f func(cost.Model) float64) []float64 {
	rng := rand.New(rand.NewPCG(5, 6))
	v := make([]float64, n)
	for i := range v {
		v[i] = f(Draw(m, rng))
	}
	slices.Sort(v)
	return v
}

// TestDrawnTogether: of two hosts of one rank a byte's costs cannot be told apart, so each
// of them is drawn from far away, and what eight hosts take from closer by. The truth is
// among the draws about as often as they promise.
func TestDrawnTogether(t *testing.T) {
	const n = 100
	fits := 20
	if testing.Short() {
		fits = 5
	}
	rng := rand.New(rand.NewPCG(7, 8))
	time := func(m cost.Model) float64 {
		us, err := Collective(Cluster{Ranks: []int{1, 1, 1, 1, 1, 1, 1, 1}, Cores: 64, Costs: m}, collective.AllReduce, 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		return us
	}
	truth := time(somePrices())
	var covered, together, apart int
	for range fits {
		m, err := Fit([]cost.Report{measured(t, rng, somePrices(), 5, 1, 1), measured(t, rng, somePrices(), 5, 1, 1)})
		if err != nil {
			t.Fatal(err)
		}
		alone := m
		alone.Precision = nil
		all, each := drawn(m, n, time), drawn(alone, n, time)
		if low, high := all[n/40], all[n-1-n/40]; low <= truth && truth <= high {
			covered++
		}
		if one := drawn(m, n, func(d cost.Model) float64 { return d.Between.PerByte.Value }); relative(one) > 0.2 {
			apart++
		}
		if relative(all) < relative(each)/2 {
			together++
		}
	}
	if covered < fits*8/10 || together < fits*9/10 || apart < fits*8/10 {
		t.Errorf("of %d fits %d have the truth among the draws, %d know eight hosts twice as well as with each cost by itself, and of %d a byte's cost is not known", fits, covered, together, apart)
	}
}

// relative is half of where 95 % of sorted draws are, over their median.
func relative(v []float64) float64 {
	n := len(v)
	return (v[n-1-n/40] - v[n/40]) / 2 / v[n/2]
}

// TestDraws: of a precision that tells costs apart draws have its deviations and their
// correlation; none leaves its interval or is put at the end of it, and one that is a point stays.
func TestDraws(t *testing.T) {
	wide := func(v float64) cost.Interval { return cost.Interval{Value: v, Low: 0, High: 2 * v} }
	var m cost.Model
	m.Between = cost.Costs{Latency: wide(10), Message: wide(4), PerByte: cost.Interval{Value: 8, Low: 8, High: 8}}
	m.Within.Reduce = wide(3) // of which no precision is known
	m.Precision = make([][]float64, nCosts)
	for i := range m.Precision {
		m.Precision[i] = make([]float64, nCosts)
	}
	const a, b, correlation = 0.5, 0.1, 0.9 // deviations of latency and message
	l, g := kindsOfCost+latency, kindsOfCost+message
	rest := 1 - correlation*correlation
	m.Precision[l][l], m.Precision[g][g] = 1/(a*a*rest), 1/(b*b*rest)
	m.Precision[l][g] = -correlation / (a * b * rest)
	m.Precision[g][l] = m.Precision[l][g]
	var x, y, z []float64
	drawn(m, 4000, func(d cost.Model) float64 {
		x, y, z = append(x, d.Between.Latency.Value), append(y, d.Between.Message.Value), append(z, d.Within.Reduce.Value)
		if d.Between.PerByte.Value != 8 || d.Within.Reduce.Value <= 0 || d.Within.Reduce.Value >= 6 || d.Within.Latency.Value != 0 {
			t.Fatalf("drew %+v", d)
		}
		return 0
	})
	for name, v := range map[string][2]float64{
		"latency": {stat.StdDev(x, nil), a}, "message": {stat.StdDev(y, nil), b}, "correlation": {stat.Correlation(x, y, nil), correlation},
		"mean latency": {stat.Mean(x, nil), 10}, "mean message": {stat.Mean(y, nil), 4},
		"a cost by itself": {stat.StdDev(z, nil), 0.88 * 3 / 1.96}, // cut off at 1.96 deviations
	} {
		if !(math.Abs(v[0]/v[1]-1) <= 0.05) {
			t.Errorf("%s is %.4g, want %.4g", name, v[0], v[1])
		}
	}
}

// TestTruncated: where the distribution says nothing, or all of it is far away, there is a draw all
// the same, between the ends.
func TestTruncated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var even []float64
	for range 1000 {
		even = append(even, truncated(rng, 0, 0, 2, 4))
	}
	if low, high, mean := slices.Min(even), slices.Max(even), stat.Mean(even, nil); low < 2 || low > 2.05 || high > 4 || high < 3.95 || !(math.Abs(mean-3) <= 0.05) {
		t.Errorf("evenly: %v to %v, %v in the mean", low, high, mean)
	}
	for middle, want := range map[float64]float64{-100: 2, 100: 4} {
		if got := truncated(rng, middle, 1, 2, 4); got != want {
			t.Errorf("around %v: %v, want %v", middle, got, want)
		}
	}
}

// TestMix is SplitMix64's first numbers of seed 0.
func TestMix(t *testing.T) {
	for x, want := range map[uint64]uint64{0: 0xe220a8397b1dcdaf, 0x9e3779b97f4a7c15: 0x6e789e6aa1b965f4} {
		if got := mix(x); got != want {
			t.Errorf("%x becomes %x, want %x", x, got, want)
		}
	}
}
