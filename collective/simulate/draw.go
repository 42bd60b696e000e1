package simulate

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"ebtrain/collective/cost"
)

// sweeps over all directions until a draw has forgotten where it began.
const sweeps = 30

// Draw is a model that explains what m was fitted to as well as m does, but for what
// noise can do: its costs are drawn from a normal distribution around those of m with
// m.Precision, among those within their intervals. So costs that cannot be told apart
// (of two hosts of one rank, a byte's on the link and a byte's that is added) vary
// together, and what they sum up to does not. Without a precision each is drawn by
// itself, and one whose interval is a point is not drawn.
func Draw(m cost.Model, r *rand.Rand) cost.Model {
	var s sampler
	var places []int
	for i, c := range intervalsOf(&m) {
		if c.High > c.Low {
			s.costs, places = append(s.costs, c), append(places, i)
		}
	}
	if len(places) == 0 {
		return m
	}
	s.begin(m.Precision, places)
	for range sweeps {
		s.sweep(r)
	}
	for a, c := range s.costs {
		v := min(max(s.at[a], c.Low), c.High)
		*c = cost.Interval{Value: v, Low: v, High: v}
	}
	return m
}

// sampler is a Gibbs sampler along the precision's own directions, in which the normal
// distribution is a product; only the intervals connect them. Costs are scaled to be
// alike, since bytes are met a million times as often as rounds.
type sampler struct {
	costs     []*cost.Interval
	at, scale []float64
	along     mat.Dense // a column for each direction
	strength  []float64 // the precision along it
}

// begin finds the directions. Places are those of the costs in the precision.
func (s *sampler) begin(precision [][]float64, places []int) {
	n := len(places)
	s.at, s.scale = make([]float64, n), make([]float64, n)
	scaled := mat.NewSymDense(n, nil)
	for a, i := range places {
		s.at[a], s.scale[a] = s.costs[a].Value, deviation(*s.costs[a])
		scaled.SetSym(a, a, 1)
		if len(precision) != nCosts || precision[i][i] <= 0 {
			continue // by itself
		}
		s.scale[a] = 1 / math.Sqrt(precision[i][i])
		for b, j := range places[:a] {
			scaled.SetSym(a, b, precision[i][j]*s.scale[a]*s.scale[b]) // 0 where b is by itself
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(scaled, true) {
		panic("simulate: a precision without eigenvectors") // of a symmetric matrix of finite numbers
	}
	eigen.VectorsTo(&s.along)
	s.strength = eigen.Values(nil)
}

// sweep draws anew along each direction in turn.
func (s *sampler) sweep(r *rand.Rand) {
	for k, strength := range s.strength {
		low, high, off := math.Inf(-1), math.Inf(1), 0.0
		for a, c := range s.costs {
			low, high = within(low, high, s.at[a], s.along.At(a, k)*s.scale[a], *c)
			off += s.along.At(a, k) * (s.at[a] - c.Value) / s.scale[a]
		}
		move := truncated(r, -off, strength, low, high)
		for a := range s.at {
			s.at[a] += move * s.along.At(a, k) * s.scale[a]
		}
	}
}

// intervalsOf are the fitted costs of m in the order of a fit.
func intervalsOf(m *cost.Model) []*cost.Interval {
	return []*cost.Interval{&m.Within.Latency, &m.Within.Message, &m.Within.PerByte, &m.Within.Reduce,
		&m.Between.Latency, &m.Between.Message, &m.Between.PerByte, &m.Between.Reduce}
}

// deviation is that of a normal distribution of which 95 % are within i.
func deviation(i cost.Interval) float64 { return (i.High - i.Low) / 2 / 1.96 }

// within is how far one can go from at along a direction, if that has been low to high,
// until a cost leaves its interval.
func within(low, high, at, direction float64, i cost.Interval) (float64, float64) {
	if direction == 0 {
		return low, high
	}
	a, b := (i.Low-at)/direction, (i.High-at)/direction
	return max(low, min(a, b, 0)), min(high, max(a, b, 0))
}

// truncated draws from a normal distribution around middle of that precision, between
// low and high; evenly where it tells nothing.
func truncated(r *rand.Rand, middle, precision, low, high float64) float64 {
	u := r.Float64()
	if precision <= 1e-12 {
		return low + u*(high-low)
	}
	n := distuv.Normal{Mu: middle, Sigma: 1 / math.Sqrt(precision)}
	from, to := n.CDF(low), n.CDF(high)
	if to-from < 1e-12 { // all of it is far away on one side
		if middle < low {
			return low
		}
		return high
	}
	return min(max(n.Quantile(from+u*(to-from)), low), high)
}
