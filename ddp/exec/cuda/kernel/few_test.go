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

// fewCase is a convolution of images x and y, channels-last, with weights of a type.
type fewCase struct {
	c       graph.Conv
	n, h, w int // of x
	x, y    int // channels
	weights graph.DType
}

func (c fewCase) shapes() (x, w, y graph.Shape) {
	oh, ow := c.c.Out(c.h, c.w)
	return graph.D(c.n, c.h, c.w, c.x), graph.D(c.y, c.c.KH, c.c.KW, c.x), graph.D(c.n, oh, ow, c.y)
}

// ops are the three of the convolution.
func (c fewCase) ops() []graph.Op {
	return []graph.Op{graph.Conv2D{Conv: c.c}, graph.Conv2DGradX{Conv: c.c, H: c.h, W: c.w}, graph.Conv2DGradW{Conv: c.c}}
}

// making is of a plan of one step, one of the three ops.
func (c fewCase) making(t testing.TB, op graph.Op, wide bool) *making {
	t.Helper()
	sx, sw, sy := c.shapes()
	x, w, y := plan.Value{DType: graph.BF16, Dims: sx}, plan.Value{DType: c.weights, Dims: sw}, plan.Value{DType: graph.BF16, Dims: sy}
	values := []plan.Value{x, w, y}
	switch op.(type) {
	case graph.Conv2DGradX:
		values = []plan.Value{w, y, x}
	case graph.Conv2DGradW:
		values = []plan.Value{x, y, w}
	}
	p := oneStep(op, values...)
	if !FitsFew(p, 0) {
		t.Fatalf("%v of %v and %v does not fit", op, sx, sy)
	}
	p.Steps[0].Op = Few{op}
	return makingOf(t, p, wide)
}

// someFew are those of conv32 and resnet128 in small, and odd geometries.
func someFew() (list []fewCase) {
	pads := func(kh, kw, t, b, l, r int) graph.Conv {
		return graph.Conv{Groups: 1, Window: graph.Window{KH: kh, KW: kw, StrideH: 1, StrideW: 1, PadT: t, PadB: b, PadL: l, PadR: r, DilH: 1, DilW: 1}}
	}
	three := graph.NewConv(3, 1, 1)
	return []fewCase{
		{three, 1, 32, 32, 3, 48, graph.BF16},
		{three, 2, 16, 32, 3, 64, graph.F32},
		{three, 1, 9, 70, 3, 96, graph.BF16},
		{three, 1, 20, 40, 64, 3, graph.BF16},
		{three, 3, 5, 7, 96, 3, graph.F32},
		{three, 3, 5, 7, 3, 48, graph.BF16},
		{three, 1, 4, 4, 1, 64, graph.F32},
		{graph.NewConv(3, 1, 0), 3, 6, 8, 4, 40, graph.BF16},
		{graph.NewConv(3, 1, 2), 1, 5, 6, 2, 21, graph.BF16},
		{graph.NewConv(5, 1, 2), 1, 8, 9, 2, 24, graph.F32},
		{graph.NewConv(1, 1, 0), 3, 7, 5, 8, 40, graph.BF16},
		{graph.NewConv(1, 1, 1), 2, 7, 5, 56, 8, graph.F32},
		{pads(1, 3, 0, 0, 1, 1), 2, 5, 7, 8, 33, graph.F32},
		{pads(3, 2, 2, 0, 0, 1), 3, 5, 37, 5, 72, graph.BF16},
		{pads(2, 3, 0, 3, 2, 0), 1, 6, 33, 19, 7, graph.F32},
		{pads(4, 4, 4, 1, 5, 0), 1, 5, 6, 128, 4, graph.BF16},
		{pads(1, 1, 0, 0, 0, 0), 1, 3, 90, 1, 256, graph.F32},
		{pads(8, 8, 3, 4, 4, 3), 1, 9, 35, 1, 128, graph.F32},
	}
}

// TestFew holds all three ops to loops in float64, forwards, backwards and with 64-bit
// indices: all bits are equal.
func TestFew(t *testing.T) {
	oneGoroutine(t)
	var launches []Launch
	made := map[string][2][]Launch{}
	for i, c := range someFew() {
		for _, op := range c.ops() {
			var ways [2][]Launch
			for k := range ways {
				l, err := c.making(t, op, k == 1).step()
				if err != nil {
					t.Fatal(err)
				}
				ways[k] = l
				launches = append(launches, l...)
			}
			made[fmt.Sprint(i, op)] = ways
		}
	}
	compiler.prepare(t, launches)
	d := newDevice(t)
	for i, c := range someFew() {
		for _, op := range c.ops() {
			if err := c.check(t, d, op, made[fmt.Sprint(i, op)]); err != nil {
				t.Errorf("%v of %+v: %v", op, c, err)
			}
			d.used = 0
		}
	}
}

// each calls f with the places in x, w and y of each product.
func (c fewCase) each(f func(x, w, y int)) {
	sx, sw, sy := c.shapes()
	for row := range sy.With(3, 1).Len() {
		n, i, j := row/(sy.At(1)*sy.At(2)), row/sy.At(2)%sy.At(1), row%sy.At(2)
		for k := range sw.With(0, 1).Len() {
			tap, ch := k/c.x, k%c.x
			r, s := i+tap/c.c.KW-c.c.PadT, j+tap%c.c.KW-c.c.PadL
			if r < 0 || r >= sx.At(1) || s < 0 || s >= sx.At(2) {
				continue
			}
			for o := range c.y {
				f(((n*sx.At(1)+r)*sx.At(2)+s)*c.x+ch, o*sw.With(0, 1).Len()+k, row*c.y+o)
			}
		}
	}
}

func (c fewCase) check(t *testing.T, d *device, op graph.Op, ways [2][]Launch) error {
	m := c.making(t, op, false)
	if _, err := m.step(); err != nil {
		return err
	}
	var values [3]*exec.Tensor
	var at [3]int
	r := rand.New(rand.NewPCG(1, 8))
	for v := range values {
		values[v] = exec.NewTensor(graph.Type{DType: m.value(v).DType, Shape: m.value(v).Dims})
		for i := range values[v].Type.Shape.Len() {
			values[v].SetAt(i, r.NormFloat64())
		}
		at[v] = d.alloc(len(values[v].Bytes()))
		copy(d.memory[at[v]:], values[v].Bytes())
	}
	scratch := d.alloc(m.scratch)
	var first []byte
	for way := range 4 {
		d.order = way % 2
		got := d.memory[at[2]:][:len(values[2].Bytes())]
		spoil(got)
		spoil(d.memory[scratch:][:m.scratch])
		for _, l := range ways[way/2] {
			if err := d.run(&l, Memory{Value: func(v int) uint64 { return deviceBase + uint64(at[v]) }, Scratch: deviceBase + uint64(scratch)}); err != nil {
				return err
			}
		}
		if !d.intact(at[2], len(got)) || !d.intact(scratch, m.scratch) {
			return fmt.Errorf("it stores beside its result")
		}
		if first == nil {
			first = bytes.Clone(got)
		}
		if !bytes.Equal(first, got) {
			return fmt.Errorf("way %d has other bits", way)
		}
	}
	want, size := c.reference(op, values)
	copy(values[2].Bytes(), first)
	return rightTo(values[2], want, size)
}

// reference is the result in float64, and the sums of the magnitudes of what is added.
func (c fewCase) reference(op graph.Op, values [3]*exec.Tensor) (want, size []float64) {
	n := values[2].Type.Shape.Len()
	want, size = make([]float64, n), make([]float64, n)
	numbers := func(v int) []float64 {
		list := make([]float64, values[v].Type.Shape.Len())
		for i := range list {
			list[i] = nearestBF16(values[v].At(i))
		}
		return list
	}
	a, b := numbers(0), numbers(1)
	c.each(func(x, w, y int) {
		to, p := y, x
		q := w
		switch op.(type) {
		case graph.Conv2DGradX:
			to, p, q = x, w, y
		case graph.Conv2DGradW:
			to, p, q = w, x, y
		}
		v := a[p] * b[q]
		want[to] += v
		size[to] += math.Abs(v)
	})
	return want, size
}

// nearestBF16 is the nearest bfloat16.
func nearestBF16(x float64) float64 {
	t := exec.NewTensor(graph.T(graph.BF16, 1))
	t.SetAt(0, x)
	return t.At(0)
}

// rightTo says whether a result is right to roundings of sums of that size.
func rightTo(got *exec.Tensor, want, size []float64) error {
	for i, w := range want {
		bound := size[i] / (1 << 20)
		if got.Type.DType == graph.BF16 {
			bound += math.Abs(w) / (1 << 8)
		}
		if v := got.At(i); !(math.Abs(v-w) <= bound) {
			return fmt.Errorf("element %d of %d is %v, want %v", i, len(want), v, w)
		}
	}
	return nil
}
