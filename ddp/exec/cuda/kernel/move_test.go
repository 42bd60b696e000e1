package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// moveCase is a plan of one step that moves elements, its operands and what it must make.
type moveCase struct {
	p        *plan.Plan
	operands []*exec.Tensor
	want     *exec.Tensor
	launches [2][]Launch // with indices of 32 and 64 bits
}

// TestMoves: slices, concatenations, pads and transposes put each element where their op says:
// of all sizes of elements, over odd extents, from and to arrays that lie anywhere, as views of
// others do; forwards, backwards and with 64-bit indices.
func TestMoves(t *testing.T) {
	oneGoroutine(t)
	r := rand.New(rand.NewPCG(7, 4))
	cases := make([]moveCase, 72)
	var launches []Launch
	vectors, single := 0, 0
	for i := range cases {
		op, in := randomMove(r, i%4)
		cases[i] = newMoveCase(t, r, op, in)
		for k := range 1 + b2i(i%3 == 0) {
			l, err := makingOf(t, cases[i].p, k == 1).step()
			if err != nil {
				t.Fatal(err)
			}
			cases[i].launches[k] = l
			launches = append(launches, l...)
			for _, one := range l {
				vectors += b2i(bytes.Contains([]byte(one.Source), []byte("const uint")))
				single += b2i(bytes.Contains([]byte(one.Source), []byte("const u8 *x")))
			}
		}
	}
	if vectors < 5 || single < 5 {
		t.Errorf("%d kernels move several elements at once, %d bytes: the test has lost its subject", vectors, single)
	}
	compiler.prepare(t, launches)
	d := newDevice(t)
	for _, c := range cases {
		if err := c.check(d); err != nil {
			t.Errorf("%v of %v, values %+v: %v", c.p.Steps[0].Op, c.p.Values[0].Dims, c.p.Values, err)
		}
		d.used = 0
	}
}

// randomMove is an op of a kind and the types of its operands.
func randomMove(r *rand.Rand, kind int) (op graph.Op, in []graph.Type) {
	dt := []graph.DType{graph.U8, graph.U8, graph.BF16, graph.BF16, graph.F32, graph.I32, graph.F64, graph.I64}[r.IntN(8)]
	rank := 1 + r.IntN(4)
	some := func(f func(i int) int) graph.Shape {
		var d []int
		for i := range rank {
			d = append(d, f(i))
		}
		return graph.D(d...)
	}
	extents := []int{1, 2, 3, 4, 5, 6, 8, 16, 24}
	dims := some(func(int) int { return extents[r.IntN(len(extents))] })
	in = []graph.Type{{DType: dt, Shape: dims}}
	switch kind {
	case 0:
		start := some(func(i int) int { return r.IntN(dims.At(i)) * r.IntN(2) })
		step := some(func(int) int { return 1 + r.IntN(2)*r.IntN(2)*r.IntN(3) })
		limit := some(func(i int) int { return start.At(i) + 1 + r.IntN(dims.At(i)-start.At(i)) })
		return graph.Slice{Start: start, Limit: limit, Step: step}, in
	case 1:
		axis := r.IntN(rank)
		for range r.IntN([]int{3, movesMost + 5}[r.IntN(2)]) {
			in = append(in, graph.Type{DType: dt, Shape: dims.With(axis, r.IntN(9))})
		}
		return graph.Concat{Axis: axis}, in
	case 2:
		padded := some(func(int) int { return r.IntN(2) })
		few := func(i int) int { return r.IntN(3) * r.IntN(2) * padded.At(i) }
		return graph.Pad{Lo: some(few), Hi: some(few), Gap: some(few)}, in
	}
	perm := r.Perm(rank)
	return graph.Transpose{Perm: some(func(i int) int { return perm[i] })}, in
}

// newMoveCase lays the values of a step at odd places. Of transposes some convert, as those of
// images do.
func newMoveCase(t *testing.T, r *rand.Rand, op graph.Op, in []graph.Type) (c moveCase) {
	t.Helper()
	out, err := op.Infer(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := op.(graph.Transpose); ok && in[0].DType == graph.BF16 {
		out[0].DType = graph.F32
	}
	var values []plan.Value
	for _, typ := range append(in[:len(in):len(in)], out[0]) {
		values = append(values, plan.Value{DType: typ.DType, Dims: typ.Shape})
	}
	c.p = oneStep(op, values...)
	for v := range c.p.Values {
		c.p.Values[v].Off = r.IntN(9) * r.IntN(2) * c.p.Values[v].DType.Size()
	}
	for k, typ := range in {
		x := exec.NewTensor(typ)
		for i := range typ.Shape.Len() {
			x.SetAt(i, float64((i*7+k*31)%251))
		}
		c.operands = append(c.operands, x)
	}
	c.want = exec.NewTensor(out[0])
	for i := range out[0].Shape.Len() {
		if k, e := cameFrom(op, in, placeOf(out[0].Shape, i)); k >= 0 {
			c.want.SetAt(i, c.operands[k].At(e))
		}
	}
	return c
}

// placeOf is the index of element i along each axis.
func placeOf(s graph.Shape, i int) []int {
	at := make([]int, s.Rank())
	for k := len(at) - 1; k >= 0; k-- {
		at[k], i = i%s.At(k), i/s.At(k)
	}
	return at
}

// cameFrom is the operand, and its element, that an op puts at a place; operand -1 is none.
func cameFrom(op graph.Op, in []graph.Type, at []int) (operand, element int) {
	from := make([]int, len(at))
	switch op := op.(type) {
	case graph.Slice:
		for k := range at {
			from[k] = op.Start.At(k) + at[k]*op.Step.At(k)
		}
	case graph.Concat:
		copy(from, at)
		for from[op.Axis] >= in[operand].Shape.At(op.Axis) {
			from[op.Axis] -= in[operand].Shape.At(op.Axis)
			operand++
		}
	case graph.Pad:
		for k := range at {
			each := op.Gap.At(k) + 1
			i := at[k] - op.Lo.At(k)
			if from[k] = i / each; i < 0 || i%each != 0 || from[k] >= in[0].Shape.At(k) {
				return -1, 0
			}
		}
	case graph.Transpose:
		for k := range at {
			from[op.Perm.At(k)] = at[k]
		}
	}
	for k, i := range from {
		element = element*in[operand].Shape.At(k) + i
	}
	return operand, element
}

// check runs the step in all ways.
func (c *moveCase) check(d *device) error {
	at := make([]int, len(c.p.Values))
	last := len(at) - 1
	d.within = nil
	for v := range at {
		val := &c.p.Values[v]
		at[v] = d.alloc(val.Off+val.Bytes()) + val.Off
		d.within = append(d.within, piece{at[v], val.Bytes(), v == last})
		if v < last {
			copy(d.memory[at[v]:], c.operands[v].Bytes())
		}
	}
	got := d.memory[at[last]:][:c.p.Values[last].Bytes()]
	for way := range 4 {
		d.order = way % 2
		if way >= 2 && c.launches[1] == nil {
			break
		}
		spoil(got)
		for _, l := range c.launches[way/2] {
			if err := d.run(&l, Memory{Value: func(v int) uint64 { return deviceBase + uint64(at[v]) }}); err != nil {
				return err
			}
		}
		if !bytes.Equal(got, c.want.Bytes()) {
			have := exec.NewTensor(c.want.Type)
			copy(have.Bytes(), got)
			for i := range have.Type.Shape.Len() {
				if a, b := have.At(i), c.want.At(i); a != b {
					return fmt.Errorf("way %d: element %d is %v, want %v", way, i, a, b)
				}
			}
		}
	}
	return nil
}
