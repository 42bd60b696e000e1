package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// columns is a plan of one step of Columns: x is the image, y its columns.
type columns struct {
	op           Columns
	x, y         graph.Shape
	xType, yType graph.DType
}

func (c columns) making(t testing.TB, wide bool) *making {
	t.Helper()
	in, out := plan.Value{DType: c.xType, Dims: c.x}, plan.Value{DType: c.yType, Dims: c.y}
	if c.op.Back {
		in, out = out, in
	}
	return makingOf(t, oneStep(c.op, in, out), wide)
}

// oneStep is a plan of one step, which makes the last value of the others: images, each in
// memory of its own.
func oneStep(op fmt.Stringer, values ...plan.Value) *plan.Plan {
	last := len(values) - 1
	s := plan.Step{Op: op, Out: []int{last}}
	for v := range values {
		values[v].Root, values[v].Space, values[v].Index, values[v].Last = v, plan.Input, v, true
		if v < last {
			s.In = append(s.In, v)
		}
	}
	return &plan.Plan{Values: values, Steps: []plan.Step{s}}
}

// makingOf is of the one step of a plan, with indices of 64 bits if wide.
func makingOf(t testing.TB, p *plan.Plan, wide bool) *making {
	t.Helper()
	m, err := maker(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.wide = wide
	return m
}

// someColumns are what convolutions of images of three channels need, and odd geometries:
// strides, dilations, a kernel that walks the other way, widths of any number.
func someColumns() (list []columns) {
	three := graph.SquareWindow(3, 1, 1)
	list = append(list,
		columns{Columns{Window: three}, graph.D(2, 5, 4, 3), graph.D(2, 5, 4, 32), graph.BF16, graph.BF16},
		columns{Columns{Window: three, Back: true}, graph.D(2, 5, 4, 3), graph.D(2, 5, 4, 32), graph.BF16, graph.F32},
		columns{Columns{Window: three}, graph.D(2, 45, 47, 3), graph.D(2, 45, 47, 32), graph.BF16, graph.BF16},
		columns{Columns{Window: graph.SquareWindow(1, 1, 0)}, graph.D(1, 1, 1, 135), graph.D(1, 1, 1, 160), graph.F32, graph.BF16})
	r := rand.New(rand.NewPCG(4, 9))
	for i := range 36 {
		w := graph.Window{KH: 1 + r.IntN(4), KW: 1 + r.IntN(4), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3), PadT: r.IntN(3), PadL: r.IntN(3), DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2)}
		if i%3 == 0 {
			w.StrideH, w.StrideW, w.PadT, w.PadL, w.DilH, w.DilW = 1, 1, -w.PadT, -w.PadL, -w.DilH, -w.DilW
		}
		c := columns{op: Columns{Window: w, First: r.IntN(2) == 0, Back: r.IntN(2) == 0}, x: graph.D(1+r.IntN(3), 1+r.IntN(9), 1+r.IntN(9), []int{1, 3, 5, 8}[r.IntN(4)])}
		c.y = graph.D(c.x.At(0), 1+r.IntN(9), 1+r.IntN(9), w.KH*w.KW*c.x.At(3)+r.IntN(3))
		if i >= 24 { // a row in each thread
			c.op.Back = false
			c.x, c.y = c.x.With(1, 30+r.IntN(9)).With(2, 30), c.y.With(0, 5).With(1, 28+r.IntN(9)).With(2, 30)
			c.x = c.x.With(0, 5)
		}
		if r.IntN(4) > 0 {
			c.y = c.y.With(3, (c.y.At(3)+7)/8*8)
		}
		floats := []graph.DType{graph.F32, graph.BF16}
		c.xType, c.yType = floats[r.IntN(2)], floats[r.IntN(2)]
		list = append(list, c)
	}
	return list
}

// each calls f with the places in y and x of each element that is copied, in the order in
// which Back adds them to one of x.
func (c columns) each(f func(y, x int)) {
	w, channels := c.op.Window, c.x.At(3)
	for row := range c.y.With(3, 1).Len() {
		n, i, j := row/(c.y.At(1)*c.y.At(2)), row/c.y.At(2)%c.y.At(1), row%c.y.At(2)
		for k := range w.KH * w.KW * channels {
			ch, tap := k%channels, k/channels
			if c.op.First {
				ch, tap = k/(w.KH*w.KW), k%(w.KH*w.KW)
			}
			r, s := i*w.StrideH+tap/w.KW*w.DilH-w.PadT, j*w.StrideW+tap%w.KW*w.DilW-w.PadL
			if r >= 0 && r < c.x.At(1) && s >= 0 && s < c.x.At(2) {
				f(row*c.y.At(3)+k, ((n*c.x.At(1)+r)*c.x.At(2)+s)*channels+ch)
			}
		}
	}
}

// TestColumns holds both directions to loops: copies have equal bits, sums are right to
// roundings; forwards, backwards and with 64-bit indices all bits are equal.
func TestColumns(t *testing.T) {
	oneGoroutine(t)
	list := someColumns()
	var launches []Launch
	for _, c := range list {
		for _, wide := range []bool{false, true} {
			l, err := c.making(t, wide).step()
			if err != nil {
				t.Fatal(err)
			}
			launches = append(launches, l...)
		}
	}
	ordered := append([]Launch(nil), launches...)
	compiler.prepare(t, launches)
	d := newDevice(t)
	for i, c := range list {
		if err := c.check(d, ordered[2*i:2*i+2]); err != nil {
			t.Errorf("%v from %v%v to %v%v: %v", c.op, c.xType, c.x, c.yType, c.y, err)
		}
		d.used = 0
	}
}

func (c columns) check(d *device, ways []Launch) error {
	from, to := exec.NewTensor(graph.Type{DType: c.xType, Shape: c.x}), exec.NewTensor(graph.Type{DType: c.yType, Shape: c.y})
	if c.op.Back {
		from, to = to, from
	}
	r := rand.New(rand.NewPCG(1, 8))
	for i := range from.Type.Shape.Len() {
		from.SetAt(i, r.NormFloat64())
	}
	want, size := make([]float64, to.Type.Shape.Len()), make([]float64, to.Type.Shape.Len())
	c.each(func(y, x int) {
		if c.op.Back {
			x, y = y, x
		}
		want[y] += from.At(x)
		size[y] += math.Abs(from.At(x))
	})
	at := [2]int{d.alloc(len(from.Bytes())), d.alloc(len(to.Bytes()))}
	copy(d.memory[at[0]:], from.Bytes())
	d.within = []piece{{at[0], len(from.Bytes()), false}, {at[1], len(to.Bytes()), true}}
	defer func() { d.within = nil }()
	var first []byte
	for way := range 4 {
		d.order = way % 2
		got := d.memory[at[1]:][:len(to.Bytes())]
		spoil(got)
		if err := d.run(&ways[way/2], Memory{Value: func(v int) uint64 { return deviceBase + uint64(at[v]) }}); err != nil {
			return err
		}
		if !d.intact(at[1], len(got)) {
			return fmt.Errorf("it stores beside its result")
		}
		if first == nil {
			first = bytes.Clone(got)
		}
		if !bytes.Equal(first, got) {
			return fmt.Errorf("way %d has other bits", way)
		}
	}
	copy(to.Bytes(), first)
	for i, w := range want {
		bound := size[i] / (1 << 20)
		if to.Type.DType == graph.BF16 {
			bound += math.Abs(w) / (1 << 8)
		}
		if v := to.At(i); !(math.Abs(v-w) <= bound) {
			return fmt.Errorf("element %d is %v, want %v", i, v, w)
		}
	}
	return nil
}
