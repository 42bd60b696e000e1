package randomgraph

import (
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// wildness says which values that are not near 1 a program's leaves of floating point hold.
type wildness int

const (
	tamed     wildness = iota
	nonfinite          // infinities of both signs and NaN, in few elements
	tiny               // zeros of both signs and subnormal numbers, in many
	huge               // numbers whose products, or sums, overflow, in few
)

func (w wildness) String() string {
	return [...]string{"", "infinities and NaN", "tiny numbers", "huge numbers"}[w]
}

// wild makes one program in six wild.
func (c *Choices) wild() wildness { return wildness(max(0, c.n(18)-14)) }

// into puts such values into v, a leaf of type d that n names.
func (w wildness) into(v []float64, d graph.DType, n philox.Name) {
	size := len(v)
	choose := func(i, below int) int { return n.Intn(size+i, below) } // other numbers than those of elements
	if size == 0 {
		return
	}
	switch w {
	case nonfinite, huge:
		list := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
		if w == huge {
			list = []float64{1e20, -1e20, 1e36, 3e38, -3e38}
		}
		if choose(0, 3) > 0 { // the other leaves stay tame, or nothing else would be left
			for i := range 1 + choose(1, 2) {
				v[choose(2+i, size)] = list[choose(4+i, len(list))]
			}
		}
	case tiny:
		least := 2e-40
		if d == graph.F64 {
			least = 5e-310
		}
		for i := range v {
			if k := n.Intn(i, 10); k < 4 {
				v[i] = []float64{0, math.Copysign(0, -1), least, -least}[k]
			}
		}
	}
}

// subnormal says whether x is so in type d, where a backend may take it for zero.
func subnormal(x float64, d graph.DType) bool {
	least := 0x1p-126
	if d == graph.F64 {
		least = 0x1p-1022
	}
	return x != 0 && math.Abs(x) < least
}

// Runs of the reference that are not of noise: what they change in a result is not known.
const (
	spread   = -1 - iota // a convolution's operand that is not finite makes NaN of more results
	overflow             // what may overflow is NaN
	flushed              // subnormal leaves are zeros
)

// doubts notes what else than rounding backends may do to a wild program.
func (c *Checker) doubts(p *Program, w *wide, tol *tolerance) error {
	run := func(s int) (results, error) {
		got, err := c.noisy(p, w, s)
		if err != nil {
			err = fmt.Errorf("reference, %v: %w", p.wild, err)
		}
		return got, err
	}
	switch p.wild {
	case huge:
		got, err := run(overflow)
		if err != nil {
			return err
		}
		tol.add(got)
		tol.edges = true
		fallthrough
	case nonfinite:
		got, err := run(spread)
		if err != nil {
			return err
		}
		tol.maybe = got
		tol.add(got.without(tol.want)) // a step or comparison makes numbers of NaN
	case tiny:
		got, err := run(flushed)
		if err != nil {
			return err
		}
		tol.add(got)
	}
	return nil
}

// without is all with the numbers of want in place of NaN.
func (all results) without(want results) results {
	kept := make(results, len(all))
	for r := range all {
		kept[r] = map[string]*exec.Tensor{}
		for name, t := range all[r] {
			c := exec.NewTensor(t.Type)
			for i := range t.Type.Shape.Len() {
				if c.SetAt(i, t.At(i)); math.IsNaN(t.At(i)) {
					c.SetAt(i, want[r][name].At(i))
				}
			}
			kept[r][name] = c
		}
	}
	return kept
}

// Inputs of a wide graph that are switched on in those runs.
const (
	spreadName   = "spread"
	overflowName = "overflow"
)

// doubt is the value of such an input in run s.
func doubt(name string, s int) float64 {
	switch {
	case name == spreadName && (s == spread || s == overflow):
		return 1
	case name == overflowName && s == overflow:
		return math.NaN()
	case name == overflowName:
		return 1
	}
	return 0
}

// mostOf is the largest number of type d of which n may be added up in any order, to within
// some digits; a product of two roots of it is as large.
func mostOf(d graph.DType, n int) float64 {
	if d == graph.F64 {
		return 1e300 / float64(max(n, 1))
	}
	return 1e37 / float64(max(n, 1))
}

// mostTerm is the largest operand of a sum, of terms or of products, that surely does not
// overflow.
func mostTerm(t graph.Type, products bool) float64 {
	most := mostOf(t.DType, t.Shape.Len())
	if products {
		return math.Sqrt(most)
	}
	return most
}

// mayOverflow makes NaN, in the overflow run, of what is larger than most.
func (w *widener) mayOverflow(x graph.ID, most float64) graph.ID {
	t := w.b.Type(x)
	scale := w.b.BroadcastTo(w.b.Input(overflowName, graph.T(graph.F64)), t.Shape)
	return w.b.Select(w.b.Greater(w.b.Abs(x), w.b.Full(t, most)), w.b.Mul(x, scale), x)
}

// maySpread adds NaN, in the spread run, to those results y of a convolution that may share
// intermediate values with an operand that is not finite. A convolution by fewer
// multiplications adds up pixels that are not of one window, and a pixel of padding may
// be left out or be multiplied as a zero. Other images and other channels stay as they are.
func (w *widener) maySpread(op graph.Op, in []graph.ID, y graph.ID) graph.ID {
	b := w.b
	if len(in) < 2 || b.Shape(in[0]).Len() == 0 || b.Shape(in[1]).Len() == 0 || b.Shape(y).Len() == 0 {
		return y
	}
	mark := func(x graph.ID, axes ...int) graph.ID { return b.SumKeep(b.Scale(x, 0), axes...) }
	var m graph.ID
	switch op.(type) {
	case graph.Conv2D: // by image, and by channel of the result
		channels := mark(in[1], 1, 2, 3)
		m = b.Add(mark(in[0], 1, 2, 3), b.Reshape(channels, graph.D(1, b.Shape(channels).At(0), 1, 1)))
	case graph.Conv2DGradX: // by image
		m = b.Add(mark(in[0], 0, 1, 2, 3), mark(in[1], 1, 2, 3))
	case graph.Conv2DGradW: // by channel of the result
		channels := mark(in[1], 0, 2, 3)
		m = b.Add(mark(in[0], 0, 1, 2, 3), b.Reshape(channels, graph.D(b.Shape(channels).At(1), 1, 1, 1)))
	default:
		return y
	}
	on := b.BroadcastTo(b.Input(spreadName, graph.T(graph.F64)), b.Shape(m))
	return b.Add(y, b.Select(on, m, b.Zeros(b.Type(m))))
}
