package simulate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"ebtrain/collective"
	"ebtrain/collective/cost"
)

// Fit is the model of several runs of collbench: the costs with which the simulated
// collectives take as long as the measured ones undisturbed. It minimises relative errors
// with Huber's weights, as cost.Fit does, and no cost is negative.
//
// A simulated time is that of a critical path, which is a sum of costs, each as often
// as it is met: t = Σ nᵢ·costᵢ, with nᵢ = ∂t/∂costᵢ. So each iteration finds the paths
// and solves a linear problem. Reports of other collectives than all-reduce of f32 in
// memory from Alloc are an error, and so is none.
func Fit(reports []cost.Report) (cost.Model, error) {
	f := fit{}
	for _, r := range reports {
		if err := f.add(r); err != nil {
			return cost.Model{}, err
		}
	}
	if len(f.points) == 0 {
		return cost.Model{}, fmt.Errorf("simulate: no times to fit costs to, expected reports of collbench")
	}
	f.costs = make([]float64, nCosts)
	for i := range f.costs {
		f.costs[i] = 1 // us, and ns: any that has all of a path's parts in it
	}
	for range iterations {
		f.paths()
		f.reweigh()
		if f.solve() < settled {
			break
		}
	}
	f.paths()
	f.reweigh()
	return f.model(reports), nil
}

// Places of the costs in a fit, those within hosts first.
const (
	latency = iota
	message
	perByte
	reduction
	kindsOfCost
	nCosts = 2 * kindsOfCost
)

// Constants of the fit, the first two of which are those of cost.Fit.
const (
	huber      = 1.345
	confidence = 0.95
	iterations = 60    // at most
	worst      = 1e10  // a condition number beyond which costs cannot be told apart
	ridge      = 1e-9  // makes those have wide intervals, in place of none
	nothing    = 1e-6  // us or ns that are as good as 0
	exact      = 1e-18 // a variance of relative errors that are rounding
	settled    = 1e-9  // what costs still change by, of themselves, when it is enough
)

// point is a measured time.
type point struct {
	cluster  Cluster
	bytes    int
	us       float64
	model    float64
	path     []float64 // how often each cost is met
	residual float64   // us/model - 1
	weight   float64   // Huber's
}

type fit struct {
	points []point
	costs  []float64
	free   []bool // costs that some path meets
	spread float64
}

func (f *fit) add(r cost.Report) error {
	if r.Collective != collective.AllReduce.String() || r.Type != collective.F32.String() || r.Memory != "alloc" {
		return fmt.Errorf("simulate: a report is of %s of %s in %s memory, expected all-reduce of f32 in alloc memory", r.Collective, r.Type, r.Memory)
	}
	c := Cluster{Ranks: r.Ranks, Cores: r.CPUs}
	if r.Machines == 1 {
		c.Together = len(r.Ranks)
	}
	if err := c.check(); err != nil {
		return err
	}
	if len(r.Ranks) == 1 && r.Ranks[0] == 1 {
		return errors.New("simulate: a report is of one rank, whose collectives take no time, expected 2 ranks at least")
	}
	for _, s := range r.Sizes {
		if !(s.Median > 0) || s.Bytes < 0 {
			return fmt.Errorf("simulate: a report has %v us for %d bytes, expected more than 0 for 0 bytes or more", s.Median, s.Bytes)
		}
		f.points = append(f.points, point{cluster: c, bytes: s.Bytes, us: s.Undisturbed(), path: make([]float64, nCosts)})
	}
	return nil
}

// modelOf is the costs as a model, without intervals.
func modelOf(costs []float64) cost.Model {
	v := func(i int) cost.Interval { return cost.Interval{Value: costs[i]} }
	of := func(at int) cost.Costs {
		return cost.Costs{Latency: v(at + latency), Message: v(at + message), PerByte: v(at + perByte), Reduce: v(at + reduction)}
	}
	return cost.Model{Within: of(0), Between: of(kindsOfCost)}
}

// paths finds what each point's critical path is made of: the derivatives of its time.
func (f *fit) paths() {
	f.free = make([]bool, nCosts)
	for i := range f.points {
		p := &f.points[i]
		p.model = f.time(p, f.costs)
		for k, c := range f.costs {
			costs := slices.Clone(f.costs)
			step := max(1e-6*c, 1e-9)
			costs[k] += step
			p.path[k] = (f.time(p, costs) - p.model) / step
			if p.path[k] < 1e-6 { // nothing but rounding
				p.path[k] = 0
			}
			f.free[k] = f.free[k] || p.path[k] > 0
		}
		p.residual = p.us/max(p.model, 1e-3) - 1
	}
}

func (f *fit) time(p *point, costs []float64) float64 {
	c := p.cluster
	c.Costs = modelOf(costs)
	us, err := Collective(c, collective.AllReduce, p.bytes)
	if err != nil {
		panic(err) // add has checked it
	}
	return us
}

// reweigh finds the spread of the residuals, and what each point counts.
func (f *fit) reweigh() {
	var sizes []float64
	for _, p := range f.points {
		sizes = append(sizes, math.Abs(p.residual))
	}
	slices.Sort(sizes)
	n := len(sizes)
	f.spread = max(1.4826*(sizes[n/2]+sizes[(n-1)/2])/2, 1e-9)
	for i := range f.points {
		p := &f.points[i]
		p.weight = min(1, huber*f.spread/max(math.Abs(p.residual), 1e-12))
	}
}

// solve moves the costs half the way to the weighted least squares on the paths of now,
// among those without a negative cost, and is the largest relative change.
func (f *fit) solve() float64 {
	best, changed := f.best(), 0.0
	for i, x := range best {
		if f.free[i] {
			next := (f.costs[i] + x) / 2
			if x == 0 && next < nothing {
				next = 0
			}
			changed = max(changed, math.Abs(next-f.costs[i])/max(next, 1e-9))
			f.costs[i] = next
		}
	}
	return changed
}

// best is the least squares: of all costs that are met, or, if one would be negative, of
// the best set of them, while the others are 0.
func (f *fit) best() []float64 {
	squares, products := f.normal(true)
	all := 0
	for i, free := range f.free {
		if free {
			all |= 1 << i
		}
	}
	if x, ok := f.subset(squares, products, all); ok {
		return x
	}
	best, least := make([]float64, nCosts), math.Inf(1)
	for set := range 1 << nCosts {
		x, ok := f.subset(squares, products, set&all)
		if !ok {
			continue
		}
		loss := 0.0
		for i := range x {
			loss -= 2 * x[i] * products[i]
			for j := range x {
				loss += x[i] * squares.At(i, j) * x[j]
			}
		}
		if loss < least {
			best, least = x, loss
		}
	}
	return best
}

// normal is the sums of the normal equations of relative errors.
func (f *fit) normal(weighted bool) (*mat.SymDense, []float64) {
	squares, products := mat.NewSymDense(nCosts, nil), make([]float64, nCosts)
	for _, p := range f.points {
		w := 1 / (max(p.model, 1e-3) * max(p.model, 1e-3))
		if weighted {
			w *= p.weight
		}
		for i, a := range p.path {
			products[i] += w * a * p.us
			for j := i; j < nCosts; j++ {
				squares.SetSym(i, j, squares.At(i, j)+w*a*p.path[j])
			}
		}
	}
	return squares, products
}

// subset solves for the costs of a set alone, if that has one answer and none of them
// is negative. Costs are scaled, since bytes are met a million times as often as rounds.
func (f *fit) subset(squares *mat.SymDense, products []float64, set int) ([]float64, bool) {
	var members []int
	for i := range nCosts {
		if set>>i&1 != 0 {
			if squares.At(i, i) == 0 {
				return nil, false
			}
			members = append(members, i)
		}
	}
	x := make([]float64, nCosts)
	if len(members) == 0 {
		return x, true
	}
	chol, ok := factor(squares, members, 0)
	if !ok {
		return nil, false
	}
	right := mat.NewVecDense(len(members), nil)
	for a, i := range members {
		right.SetVec(a, products[i]/math.Sqrt(squares.At(i, i)))
	}
	if err := chol.SolveVecTo(right, right); err != nil {
		return nil, false
	}
	for a, i := range members {
		x[i] = right.AtVec(a) / math.Sqrt(squares.At(i, i))
		if x[i] < 0 {
			return nil, false
		}
	}
	return x, true
}

// factor is of the members' part of squares, scaled to ones on its diagonal, to which
// ridge is added.
func factor(squares *mat.SymDense, members []int, ridge float64) (*mat.Cholesky, bool) {
	part := mat.NewSymDense(len(members), nil)
	for a, i := range members {
		for b, j := range members[a:] {
			part.SetSym(a, a+b, squares.At(i, j)/math.Sqrt(squares.At(i, i)*squares.At(j, j)))
		}
		part.SetSym(a, a, 1+ridge)
	}
	var chol mat.Cholesky
	return &chol, chol.Factorize(part) && chol.Cond() < worst
}

// intervals are half the widths of those of the costs: Student's t times the deviation,
// by Huber's variance as in cost.Fit, of all costs that are met, also of those that
// were found to be 0. One that cannot be told from others may be as much more as where
// it alone explains a time. Precision is that of all together, for simulate.Draw, whose
// normal distribution is as wide as Student's; nil if there are too few times.
func (f *fit) intervals() (half []float64, precision [][]float64) {
	squares, _ := f.normal(false)
	var members []int
	half = make([]float64, nCosts)
	for i := range nCosts {
		if f.free[i] {
			members, half[i] = append(members, i), f.alone(i)
		}
	}
	n := float64(len(f.points))
	left := n - float64(len(members))
	chol, ok := factor(squares, members, ridge)
	var inverse mat.SymDense
	if left < 1 || !ok || chol.InverseTo(&inverse) != nil {
		return half, nil
	}
	var inside, sum float64
	for _, p := range f.points {
		sum += math.Pow(p.residual*p.weight, 2)
		if math.Abs(p.residual) <= huber*f.spread {
			inside += 1 / n
		}
	}
	inside = max(inside, 1/n)
	k := 1 + float64(len(members))/n*(1-inside)/inside
	variance := k * k * sum / left / (inside * inside)
	t := distuv.StudentsT{Sigma: 1, Nu: left}.Quantile((1 + confidence) / 2)
	for a, i := range members {
		half[i] = min(half[i], t*math.Sqrt(variance*inverse.At(a, a)/squares.At(i, i)))
	}
	wide := t / distuv.UnitNormal.Quantile((1+confidence)/2)
	precision = make([][]float64, nCosts)
	for i := range precision {
		precision[i] = make([]float64, nCosts)
		for j := range precision[i] {
			precision[i][j] = squares.At(i, j) / max(variance*wide*wide, exact)
		}
	}
	return half, precision
}

// alone is the cost with which a path of nothing else takes no longer than measured.
func (f *fit) alone(i int) float64 {
	least := math.Inf(1)
	for _, p := range f.points {
		if p.path[i] > 0 {
			least = min(least, p.us/p.path[i])
		}
	}
	return least
}

func (f *fit) model(reports []cost.Report) cost.Model {
	m := modelOf(f.costs)
	m.Version = cost.ModelVersion
	half, precision := f.intervals()
	m.Precision = precision
	for i, at := range intervalsOf(&m) {
		if !f.free[i] { // nothing was measured of it
			*at = cost.Interval{}
			continue
		}
		*at = cost.Interval{Value: f.costs[i], Low: max(0, f.costs[i]-half[i]), High: f.costs[i] + half[i]}
	}
	for _, p := range f.points {
		m.Measured = append(m.Measured, cost.Residual{Ranks: p.cluster.Ranks, Bytes: p.bytes, Measured: p.us, Model: p.model})
	}
	m.Doubts = f.doubts(reports)
	return m
}

// doubts are reasons not to believe the fit.
func (f *fit) doubts(reports []cost.Report) []string {
	var out []string
	for _, r := range reports {
		out = append(out, r.Doubts()...)
	}
	used := 0
	for _, free := range f.free {
		if free {
			used++
		}
	}
	if len(f.points) <= used {
		out = append(out, fmt.Sprintf("%d times are too few for %d costs: measure more sizes, or other numbers of ranks", len(f.points), used))
	}
	for part, name := range []string{"within a host", "between hosts"} {
		if !f.free[part*kindsOfCost+latency] {
			out = append(out, fmt.Sprintf("nothing was measured %s: what happens there takes no time in this model", name))
		}
	}
	if far := f.far(); far != "" {
		out = append(out, far)
	}
	return out
}

// tooFar is a relative error of the model that is worth a sentence.
const tooFar = 0.5

// far says at which time the model is furthest off, if that is far.
func (f *fit) far() string {
	worst := &f.points[0]
	for i := range f.points {
		if p := &f.points[i]; math.Abs(math.Log(p.us/p.model)) > math.Abs(math.Log(worst.us/worst.model)) {
			worst = p
		}
	}
	if r := worst.us / worst.model; r < 1+tooFar && r > 1/(1+tooFar) {
		return ""
	}
	return fmt.Sprintf("%d bytes on hosts of %v ranks took %.4g us and the model says %.4g: the links, or who else used them, changed during the measurement, or the model is not that of this machine",
		worst.bytes, worst.cluster.Ranks, worst.us, worst.model)
}
