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

// TestGroups runs random fused groups, of all types, over odd extents, on operands that
// are repeated along any axes and lie anywhere: what is stored has the bits of a
// machine that rounds each instruction by itself; sums are right to a rounding;
// forwards, backwards and with 64-bit indices everything has equal bits.
func TestGroups(t *testing.T) {
	oneGoroutine(t)
	r := rand.New(rand.NewPCG(1, 2))
	groups := make([]*group, 60)
	if *all {
		groups = make([]*group, 400)
	}
	var launches []Launch
	for i := range groups {
		groups[i] = randomGroup(r)
		for _, wide := range []bool{false, true} {
			m := groups[i].making(t, wide)
			l, err := m.step()
			if err != nil {
				t.Fatal(err)
			}
			groups[i].launches[b2i(wide)] = l
			launches = append(launches, l...)
		}
		if b, err := groups[i].batch(); err != nil {
			t.Fatal(err)
		} else if b != nil {
			launches = append(launches, b.Launch)
		}
	}
	compiler.prepare(t, launches)
	d := newDevice(t)
	two, sums, met := 0, 0, 0
	for i, g := range groups {
		if err := g.check(d); err != nil {
			t.Errorf("group %d: %v\n%s", i, err, g)
		}
		d.used = 0
		sums += len(g.f.Sums)
		if len(g.launches[0]) > 1 {
			two++
		}
		if Counters(g.launches[0]) > 0 {
			met++
		}
	}
	if sums < len(groups)/2 || two < len(groups)/20 || met < len(groups)/10 {
		t.Errorf("%d reductions, %d groups of several kernels, %d whose blocks meet: the test has lost its subject", sums, two, met)
	}
}

// TestImagesOfColumns: an operand that is the same for all images, but not for the rows of one,
// is no column's number, whose sum goes over rows, too.
func TestImagesOfColumns(t *testing.T) {
	const images, rows, columns = 40, 6, 32
	r := rand.New(rand.NewPCG(3, 4))
	dims := graph.D(images, rows, columns)
	f := &plan.Fused{
		DType: graph.F32, Dims: dims,
		Loads: []plan.Access{{}, {Dims: []int{images, rows * columns}, Strides: []int{0, 1}}},
		Code:  []plan.Instr{{Op: graph.Binary{Fn: graph.Mul}, X: 0, Y: 1}},
		Sums:  []plan.Reduction{{Fn: graph.ReduceSum, Reg: 2, Access: plan.Access{Dims: []int{images * rows, columns}, Strides: []int{0, 1}}}},
	}
	g := &group{p: &plan.Plan{}, f: f}
	step := plan.Step{Op: f, In: []int{g.value(r, graph.F32, dims, true), g.value(r, graph.F32, graph.D(1, rows, columns), true)}}
	step.Out = []int{g.value(r, graph.F32, graph.D(1, 1, columns), false)}
	g.p.Steps = []plan.Step{step}
	for _, wide := range []bool{false, true} {
		var err error
		if g.launches[b2i(wide)], err = g.making(t, wide).step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.check(newDevice(t)); err != nil {
		t.Errorf("%v\n%s", err, g)
	}
}

// TestRoundsEach: a group in bfloat16 rounds its numbers and each instruction's result to that.
func TestRoundsEach(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	dims := graph.D(1, 1, 500)
	mul := plan.Instr{Op: graph.Binary{Fn: graph.Mul}, X: 0, Y: 1}
	f := &plan.Fused{
		DType: graph.BF16, Dims: dims, Loads: []plan.Access{{}}, Consts: []float64{0.3}, Stores: []int{4},
		Code: []plan.Instr{mul, {Op: mul.Op, X: 2, Y: 0}, {Op: graph.Binary{Fn: graph.Add}, X: 3, Y: 2}},
	}
	g := &group{p: &plan.Plan{}, f: f}
	step := plan.Step{Op: f, In: []int{g.value(r, graph.BF16, dims, true)}}
	step.Out = []int{g.value(r, graph.BF16, dims, false)}
	g.p.Steps = []plan.Step{step}
	for i := range dims.Len() {
		g.data[0].SetAt(i, r.NormFloat64())
	}
	for _, wide := range []bool{false, true} {
		var err error
		if g.launches[b2i(wide)], err = g.making(t, wide).step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.check(newDevice(t)); err != nil {
		t.Errorf("%v\n%s", err, g)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// group is a plan of one fused step with its data.
type group struct {
	p        *plan.Plan
	f        *plan.Fused
	data     []*exec.Tensor // of the operands
	launches [2][]Launch    // with indices of 32 and 64 bits
	skew     []int          // by value: how far behind a multiple of 256 it lies, in elements
}

func (g *group) String() string {
	s := fmt.Sprintf("%v loads %v sums %v", g.f, g.f.Loads, g.f.Sums)
	for i, v := range g.p.Values {
		s += fmt.Sprintf("\n%d %v%v skew %d", i, v.DType, v.Dims, g.skew[i])
	}
	return s
}

func randomGroup(r *rand.Rand) *group {
	dt := []graph.DType{graph.F32, graph.F32, graph.F32, graph.F64, graph.BF16, graph.I32, graph.I64, graph.U8}[r.IntN(8)]
	extents := []int{1, 2, 3, 4, 5, 8, 16, 24, 33, 64, 200}
	dims := graph.D(1, 1, 1)
	for range 1 + r.IntN(4) {
		i := r.IntN(3)
		if d := extents[r.IntN(len(extents))]; dims.With(i, d).Len() < 30000 {
			dims = dims.With(i, d)
		}
	}
	if r.IntN(12) == 0 {
		dims = graph.D(3, 50, 700)
	}
	if r.IntN(4) == 0 { // long enough for several blocks to share a result
		dims = []graph.Shape{graph.D(1, 9000, 16), graph.D(1, 1, 150000), graph.D(20000, 2, 3), graph.D(2, 30000, 2), graph.D(5, 1, 24000)}[r.IntN(5)]
	}
	g := &group{p: &plan.Plan{}, f: &plan.Fused{DType: dt, Dims: dims}}
	part := func() graph.Shape {
		s := dims
		for i := range s.Rank() {
			if r.IntN(2) == 0 {
				s = s.With(i, 1)
			}
		}
		return s
	}
	step := plan.Step{Op: g.f}
	for range 1 + r.IntN(3) {
		shape := dims
		if r.IntN(2) == 0 {
			shape = part()
		}
		g.f.Loads = append(g.f.Loads, plan.NewAccess(dims, shape))
		step.In = append(step.In, g.value(r, memoryType(r, dt), shape, true))
	}
	g.f.Consts = []float64{float64(r.IntN(9)-4) / 2}
	for range 1 + r.IntN(6) {
		g.f.Code = append(g.f.Code, randomInstr(r, g.f, dt))
	}
	last := func() int { return max(0, g.f.Registers()-1-r.IntN(3)) }
	for range r.IntN(3) {
		g.f.Stores = append(g.f.Stores, last())
		step.Out = append(step.Out, g.value(r, memoryType(r, dt), dims, false))
	}
	for range r.IntN(4) {
		shape := part()
		if shape == dims { // nothing is reduced
			continue
		}
		red := plan.Reduction{Fn: graph.ReduceSum, Reg: last(), Access: plan.NewAccess(dims, shape)}
		switch {
		case r.IntN(3) == 0:
			red.Fn = graph.ReduceMax
		case r.IntN(3) == 0 && dt == graph.F32:
			red.Centred = true
		}
		g.f.Sums = append(g.f.Sums, red)
		step.Out = append(step.Out, g.value(r, dt, shape, false))
	}
	if len(step.Out) == 0 {
		g.f.Stores = []int{last()}
		step.Out = []int{g.value(r, dt, dims, false)}
	}
	g.p.Steps = []plan.Step{step}
	return g
}

// memoryType is the type of an array that a group of type dt reads or writes.
func memoryType(r *rand.Rand, dt graph.DType) graph.DType {
	if dt == graph.F32 && r.IntN(3) == 0 {
		return graph.BF16
	}
	return dt
}

// randomInstr is an instruction that is exact but for one rounding.
func randomInstr(r *rand.Rand, f *plan.Fused, dt graph.DType) plan.Instr {
	reg := func() int { return r.IntN(f.Registers()) }
	in := plan.Instr{X: reg(), Y: reg(), Z: reg()}
	unaries := []graph.UnaryFn{graph.Neg, graph.Abs, graph.Sign, graph.Step, graph.Relu, graph.LeakyStep, graph.Scale, graph.Shift}
	binaries := []graph.BinaryFn{graph.Add, graph.Sub, graph.Mul, graph.Max, graph.Min, graph.Greater, graph.Equal}
	switch k := r.IntN(8); {
	case k == 0:
		in.Op = graph.Select{}
	case k < 4 && dt.IsFloat():
		in.Op = graph.Unary{Fn: unaries[r.IntN(len(unaries))], Bits: math.Float64bits(float64(r.IntN(7)-3) / 4)}
	default:
		in.Op = graph.Binary{Fn: binaries[r.IntN(len(binaries))]}
	}
	return in
}

// value adds an array to the plan, filled if it is an operand.
func (g *group) value(r *rand.Rand, dt graph.DType, dims graph.Shape, operand bool) int {
	v := len(g.p.Values)
	skew := 0
	if r.IntN(4) == 0 {
		skew = r.IntN(9)
	}
	g.p.Values = append(g.p.Values, plan.Value{DType: dt, Dims: dims, Root: v, Space: plan.Input, Index: v, Off: skew * dt.Size()})
	g.skew = append(g.skew, skew)
	if operand {
		x := exec.NewTensor(graph.Type{DType: dt, Shape: dims})
		for i := range dims.Len() {
			x.SetAt(i, float64(r.IntN(33)-16)/4)
		}
		if dt == graph.F32 && r.IntN(6) == 0 {
			x.SetAt(r.IntN(dims.Len()), []float64{math.NaN(), math.Inf(1), math.Copysign(0, -1)}[r.IntN(3)])
		}
		g.data = append(g.data, x)
	}
	return v
}

func (g *group) making(t *testing.T, wide bool) *making {
	m, err := maker(g.p, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.wide = wide
	return m
}

// check runs the group in all ways.
func (g *group) check(d *device) error {
	at := make([]int, len(g.p.Values))
	for v := range at {
		at[v] = d.alloc(g.p.Values[v].Bytes()+g.p.Values[v].Off) + g.p.Values[v].Off
	}
	for i, x := range g.data {
		copy(d.memory[at[i]:], x.Bytes())
	}
	scratch := d.alloc(1 << 22)
	counters := d.alloc(1 << 14)
	clear(d.memory[counters:][:Counters(g.launches[1])])
	m := Memory{Value: func(v int) uint64 { return deviceBase + uint64(at[v]) }, Scratch: deviceBase + uint64(scratch), Counters: deviceBase + uint64(counters)}
	bytesOf := func(v int) []byte { return d.memory[at[v]:][:g.p.Values[v].Bytes()] }
	d.within = []piece{{scratch, 1 << 22, true}, {counters, Counters(g.launches[1]), true}}
	for v := range at {
		d.within = append(d.within, piece{at[v], g.p.Values[v].Bytes(), v >= len(g.data)})
	}
	defer func() { d.within = nil }()
	var first [][]byte
	for way := range 4 {
		d.order = way % 2
		for _, v := range g.p.Steps[0].Out {
			spoil(bytesOf(v))
		}
		spoil(d.memory[scratch:][:1<<20])
		for i := range g.launches[way/2] {
			if err := d.run(&g.launches[way/2][i], m); err != nil {
				return err
			}
		}
		for k, v := range g.p.Steps[0].Out {
			if way == 0 {
				first = append(first, bytes.Clone(bytesOf(v)))
			} else if !bytes.Equal(first[k], bytesOf(v)) {
				return fmt.Errorf("result %d has other bits in way %d", k, way)
			}
		}
	}
	for v := range at {
		off := g.p.Values[v].Off
		if !d.intact(at[v]-off, g.p.Values[v].Bytes()+off) {
			return fmt.Errorf("something was written beside value %d", v)
		}
	}
	if err := g.compare(first); err != nil {
		return err
	}
	return g.checkBatch(d, m, first, bytesOf)
}

// batch is the group as a batch, nil if it is none for one.
func (g *group) batch() (*Batch, error) {
	if !Batches(g.p, 0) {
		return nil, nil
	}
	return ForChains(g.p, [][]int{{0}})
}

// checkBatch runs the group as a batch, which has the bits of its own kernels.
func (g *group) checkBatch(d *device, m Memory, want [][]byte, bytesOf func(v int) []byte) error {
	b, err := g.batch()
	if b == nil || err != nil {
		return err
	}
	program := b.Program(func(int) Memory { return m })
	where := d.alloc(len(program))
	copy(d.memory[where:], program)
	d.within = append(d.within, piece{where, len(program), false})
	for d.order = range 2 {
		for _, v := range g.p.Steps[0].Out {
			spoil(bytesOf(v))
		}
		if err := d.runArgs(&b.Launch, b.Args(deviceBase+uint64(where))); err != nil {
			return err
		}
		for k, v := range g.p.Steps[0].Out {
			if !bytes.Equal(want[k], bytesOf(v)) {
				return fmt.Errorf("in a batch result %d has other bits (order %d)", k, d.order)
			}
		}
	}
	return nil
}

// compare computes the group point by point.
func (g *group) compare(got [][]byte) error {
	f := g.f
	stored := make([]*exec.Tensor, len(got))
	for k, v := range g.p.Steps[0].Out {
		stored[k] = exec.NewTensor(graph.Type{DType: g.p.Values[v].DType, Shape: g.p.Values[v].Dims})
	}
	cell := exec.NewTensor(graph.T(f.DType, 1))
	round := func(v float64) float64 { cell.SetAt(0, v); return cell.At(0) }
	sums := make([][][]float64, len(f.Sums))
	for k := range sums {
		sums[k] = make([][]float64, stored[len(f.Stores)+k].Type.Shape.Len())
	}
	for p := range f.Dims.Len() {
		var reg []float64
		for k, a := range f.Loads {
			reg = append(reg, round(g.data[k].At(a.Offset(p))))
		}
		for _, c := range f.Consts {
			reg = append(reg, round(constant(f.DType, c)))
		}
		for _, c := range f.Code {
			reg = append(reg, round(evaluate(c, reg)))
		}
		for k, r := range f.Stores {
			stored[k].SetAt(p, reg[r])
		}
		for k, r := range f.Sums {
			o := r.Offset(p)
			sums[k][o] = append(sums[k][o], reg[r.Reg])
		}
	}
	for k := range f.Stores {
		have := exec.NewTensor(stored[k].Type)
		copy(have.Bytes(), got[k])
		for i := range have.Type.Shape.Len() {
			if a, b := have.At(i), stored[k].At(i); a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				return fmt.Errorf("stored result %d, element %d: got %v, want %v", k, i, a, b)
			}
		}
	}
	for k, r := range f.Sums {
		have := exec.NewTensor(stored[len(f.Stores)+k].Type)
		copy(have.Bytes(), got[len(f.Stores)+k])
		for o, part := range sums[k] {
			if err := near(have, o, part, r); err != nil {
				return fmt.Errorf("reduction %d, element %d: %w", k, o, err)
			}
		}
	}
	return nil
}

func evaluate(c plan.Instr, reg []float64) float64 {
	switch op := c.Op.(type) {
	case graph.Unary:
		return plan.EvalUnary(op.Fn, op.A(), reg[c.X])
	case graph.Binary:
		return plan.EvalBinary(op.Fn, reg[c.X], reg[c.Y])
	}
	if reg[c.X] != 0 {
		return reg[c.Y]
	}
	return reg[c.Z]
}

// near holds element o of a reduction to the points that go into it.
func near(have *exec.Tensor, o int, part []float64, r plan.Reduction) error {
	want := exec.NewTensor(graph.T(have.Type.DType, 1))
	sum, size := 0.0, 0.0
	for _, v := range part {
		sum, size = sum+v, size+math.Abs(v)
	}
	switch {
	case r.Centred:
		mean, squares := sum/float64(len(part)), 0.0
		for _, v := range part {
			squares += (v - mean) * (v - mean)
		}
		sum, size = squares, squares
	case r.Fn == graph.ReduceMax:
		sum, size = part[0], 0
		for _, v := range part[1:] {
			sum = max(sum, v)
		}
	}
	want.SetAt(0, sum)
	a, b := have.At(o), want.At(0)
	if !have.Type.DType.IsFloat() { // sums wrap around
		return nil
	}
	epsilon := map[graph.DType]float64{graph.F32: 0x1p-22, graph.BF16: 0x1p-7, graph.F64: 0x1p-40}[have.Type.DType]
	if a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= epsilon*size {
		return nil
	}
	return fmt.Errorf("got %v, want %v", a, b)
}
