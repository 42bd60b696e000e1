package randomgraph

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// Target is a way to run programs that is held to the reference.
type Target struct {
	Name string
	// Ranks are its backends, one for each rank, two at least.
	Ranks []exec.Backend
	Remat bool
	// BF16 says that its products may round operands to bfloat16.
	BF16 bool
	// Bits names what promises equal bits: targets of one name agree in each.
	Bits string
}

// Checker checks programs.
type Checker struct {
	Targets []Target
	// Group makes the communicators of so many ranks.
	Group func(n int) []collective.Comm
}

// tolerance is how far elements may be from want.
type tolerance struct {
	want  results
	moved []map[string][]float64 // by rank, value and element: how far noise took it; infinitely if it is not known
	maybe results                // NaN where a backend's may be NaN; nil if nowhere
	edges bool                   // what may overflow has moved infinitely
}

// Check says how a program goes wrong on the targets, nil if it does not.
func (c *Checker) Check(p *Program) error {
	plain, err := c.reference(p, false)
	if err != nil {
		return err
	}
	rough := plain
	if slices.ContainsFunc(c.Targets, func(t Target) bool { return t.BF16 }) && slices.ContainsFunc(p.Graph.Nodes(), func(n graph.Node) bool { return heavyOp(n.Op) }) {
		if rough, err = c.reference(p, true); err != nil {
			return err
		}
	}
	same := map[string]results{}
	for _, t := range c.Targets {
		if !p.takes(t, c.Targets[0]) {
			continue
		}
		e := c.execution(p, t)
		got, err := e.run()
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		tol := plain
		if t.BF16 {
			tol = rough
		}
		if err := c.near(p, t, got, tol); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		if first, ok := same[t.Bits]; ok && t.Bits != "" {
			if err := equalBits(first, got); err != nil {
				return fmt.Errorf("%s, which promises the bits of %s: %w", t.Name, t.Bits, err)
			}
		}
		same[t.Bits] = got
	}
	t := c.Targets[0]
	if err := c.secondRun(p, t, same[t.Bits]); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	if err := c.alone(p, t, plain); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	if err := c.worlds(p, t); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	if err := c.shared(p, t, same[t.Bits], plain); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// takes says whether a program is run on a target: the first, those with its bits,
// and a third of the others, which the program chooses.
func (p *Program) takes(t, first Target) bool {
	if t.Name == first.Name || t.Bits != "" && t.Bits == first.Bits {
		return true
	}
	h := fnv.New32a()
	h.Write([]byte(cmp.Or(t.Bits, t.Name)))
	return (h.Sum32()>>8+uint32(p.choice))%3 == 0
}

func (c *Checker) execution(p *Program, t Target) *execution {
	e := &execution{graph: p.Graph, ranks: t.Ranks[:p.Ranks], steps: p.Steps, in: p.value, remat: t.Remat}
	if p.Ranks > 1 {
		e.comms = c.Group(p.Ranks)
	}
	return e
}

// samples is the number of noisy runs, and of those more before an error.
const samples, more = 2, 12

// reference runs the program in float64, without noise and with.
func (c *Checker) reference(p *Program, bf16 bool) (*tolerance, error) {
	w, err := widen(p.Graph, bf16, p.wild)
	if err != nil {
		return nil, fmt.Errorf("the graph in float64: %w", err)
	}
	tol := &tolerance{}
	if tol.want, err = c.noisy(p, w, 0); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	for r := range tol.want {
		tol.moved = append(tol.moved, map[string][]float64{})
		for name, t := range tol.want[r] {
			tol.moved[r][name] = make([]float64, t.Type.Shape.Len())
		}
	}
	if err := c.doubts(p, w, tol); err != nil {
		return nil, err
	}
	return tol, c.widenTolerance(p, w, tol, 1, samples)
}

// widenTolerance adds the samples from … to+samples.
func (c *Checker) widenTolerance(p *Program, w *wide, tol *tolerance, from, n int) error {
	for s := from; s < from+n; s++ {
		got, err := c.noisy(p, w, s)
		if err != nil {
			return fmt.Errorf("reference with noise: %w", err)
		}
		tol.add(got)
	}
	return nil
}

// add notes how far a run of the reference is from that without noise.
func (tol *tolerance) add(got results) {
	for r := range got {
		for name, t := range got[r] {
			for i := range t.Type.Shape.Len() {
				if g, w := t.At(i), tol.want[r][name].At(i); !equal(g, w) {
					d := math.Abs(g - w)
					if d != d {
						d = math.Inf(1)
					}
					tol.moved[r][name][i] = max(tol.moved[r][name][i], d)
				}
			}
		}
	}
}

// referenceTarget is the reference itself.
func referenceTarget(ranks int) Target {
	t := Target{Name: "reference"}
	for range ranks {
		t.Ranks = append(t.Ranks, ref.New())
	}
	return t
}

// noisy runs a wide graph with noise number s; 0 is none, and below are what wild programs
// are in doubt of.
func (c *Checker) noisy(p *Program, w *wide, s int) (results, error) {
	amplitude := map[string]float64{}
	for _, n := range w.noises {
		amplitude[n.name] = n.amplitude
	}
	narrow := map[string]graph.Leaf{}
	for _, l := range leaves(p.Graph) {
		narrow[l.Name] = l
	}
	e := &execution{graph: w.graph, steps: p.Steps, in: func(rank, step int, l graph.Leaf) *exec.Tensor {
		t := exec.NewTensor(l.Type)
		if l.Name == spreadName || l.Name == overflowName {
			t.SetAt(0, doubt(l.Name, s))
			return t
		}
		if a, ok := amplitude[l.Name]; ok {
			rnd := rand.New(rand.NewPCG(uint64(s), uint64(rank*1000+step)<<32+uint64(len(l.Name))+uint64(noiseNumber(l.Name))*131))
			for i, d := 0, t.F64(); i < len(d); i++ {
				d[i] = 1
				if s > 0 {
					d[i] += a * (2*rnd.Float64() - 1)
				}
			}
			return t
		}
		v := p.value(rank, step, narrow[l.Name])
		if v.Type == l.Type && s != flushed {
			return v
		}
		for i := range l.Type.Shape.Len() {
			if x := v.At(i); s != flushed || !v.Type.DType.IsFloat() || !subnormal(x, v.Type.DType) {
				t.SetAt(i, x)
			}
		}
		return t
	}}
	for range p.Ranks {
		e.ranks = append(e.ranks, ref.New())
	}
	if p.Ranks > 1 {
		e.comms = c.Group(p.Ranks)
	}
	return e.run()
}

func noiseNumber(name string) (n int) {
	for _, d := range name {
		if d >= '0' && d <= '9' {
			n = 10*n + int(d-'0')
		}
	}
	return n
}

// near says where got strays from the reference. Before that it looks whether
// the reference, too, is on an edge there: with more noise, and in the graph's own
// types.
func (c *Checker) near(p *Program, t Target, got results, tol *tolerance) error {
	err := tol.compare(got)
	if err == nil {
		return nil
	}
	w, werr := widen(p.Graph, t.BF16, p.wild)
	if werr != nil {
		return werr
	}
	if werr := c.widenTolerance(p, w, tol, samples+1, more); werr != nil {
		return werr
	}
	narrow, werr := c.execution(p, referenceTarget(p.Ranks)).run()
	if werr != nil {
		return fmt.Errorf("reference in the graph's own types: %w", werr)
	}
	tol.add(narrow)
	return tol.compare(got)
}

func (tol *tolerance) compare(got results) error {
	for r := range got {
		for _, name := range slices.Sorted(maps.Keys(got[r])) {
			want, moved := tol.want[r][name], tol.moved[r][name]
			if want == nil {
				return fmt.Errorf("rank %d: the reference has no %s", r, name)
			}
			var maybe *exec.Tensor
			if tol.maybe != nil {
				maybe = tol.maybe[r][name]
			}
			if err := tol.closeTo(got[r][name], want, moved, maybe); err != nil {
				return fmt.Errorf("rank %d, %s: %w", r, name, err)
			}
		}
	}
	return nil
}

// closeTo compares a value with that in float64, whose elements noise has moved, and of which
// some may be NaN.
func (tol *tolerance) closeTo(got, want *exec.Tensor, moved []float64, maybe *exec.Tensor) error {
	u := got.Type.DType.Epsilon()
	most, largest := 0.0, 0.0
	for i, m := range moved {
		if w := math.Abs(want.At(i)); !math.IsInf(m, 0) {
			most = max(most, m)
			if w <= math.MaxFloat64 {
				largest = max(largest, w)
			}
		}
	}
	if largest > 1e30 && !tol.edges {
		return nil
	}
	for i, m := range moved {
		g, w := got.At(i), want.At(i)
		if equal(g, w) || math.IsInf(m, 0) || g != g && maybe != nil && math.IsNaN(maybe.At(i)) {
			continue
		}
		bound := 32*m + 4*most + 16*u*math.Abs(w) + 4*u*largest + 1e-36
		if d := math.Abs(g - w); !(d <= bound) || math.IsInf(d, 0) {
			return fmt.Errorf("element %d of %v is %.9g, want %.9g: off by %.2g, may be %.2g", i, got.Type, g, w, d, bound)
		}
	}
	return nil
}

// equal says whether two numbers are, or are both NaN.
func equal(x, y float64) bool { return x == y || x != x && y != y }

// equalBits says where two results differ.
func equalBits(want, got results) error {
	for r := range want {
		for _, name := range slices.Sorted(maps.Keys(want[r])) {
			a, b := want[r][name], got[r][name]
			if bytes.Equal(a.Bytes(), b.Bytes()) {
				continue
			}
			for i := range a.Type.Shape.Len() {
				if x, y := a.At(i), b.At(i); x != y && (x == x || y == y) || x == 0 && math.Signbit(x) != math.Signbit(y) {
					return fmt.Errorf("rank %d, %s %v: element %d is %v and %v", r, name, a.Type, i, x, y)
				}
			}
		}
	}
	return nil
}

// secondRun compiles the program again, runs it on other values, and then on
// those of the first: the bits are the same.
func (c *Checker) secondRun(p *Program, t Target, first results) error {
	e := c.execution(p, t)
	e.again = true
	got, err := e.run()
	if err != nil {
		return err
	}
	if err := equalBits(first, got); err != nil {
		return fmt.Errorf("a second program has other bits: %w", err)
	}
	return nil
}

// alone computes the first output from leaves of its own.
func (c *Checker) alone(p *Program, t Target, tol *tolerance) error {
	if len(p.Graph.Outputs()) < 2 {
		return nil
	}
	one := edit(p.Graph)
	one.outputs, one.assigns = p.Graph.Outputs()[:1], nil
	g, err := one.build()
	if err != nil {
		return err
	}
	q := *p
	q.Graph, q.Steps = g, 1
	got, err := c.execution(&q, t).run()
	if err != nil {
		return fmt.Errorf("%s alone: %w", one.outputs[0].Name, err)
	}
	for r := range got {
		maps.DeleteFunc(got[r], func(name string, _ *exec.Tensor) bool { return tol.want[r][name] == nil || name[0] == 'v' })
	}
	if err := c.near(p, t, got, tol); err != nil {
		return fmt.Errorf("%s alone: %w", one.outputs[0].Name, err)
	}
	return nil
}

// fatal says whether a failure ends a hunt.
func fatal(err error) bool { return errors.Is(err, errSlow) }
