package pointwise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/array/arraytest"
	"ebtrain/ddp/exec/cpu/pointwise/machine"
	"ebtrain/ddp/exec/cpu/pointwise/vec"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// group is a random group over an r×c matrix and its operands.
type group struct {
	f  *plan.Fused
	in [][]float32
}

var machineOps = []graph.Op{
	graph.Unary{Fn: graph.Neg}, graph.Unary{Fn: graph.Abs}, graph.Unary{Fn: graph.Square}, graph.Unary{Fn: graph.Relu},
	graph.Unary{Fn: graph.Step}, graph.Unary{Fn: graph.Sqrt}, graph.Unary{Fn: graph.Recip},
	graph.Unary{Fn: graph.LeakyRelu, Bits: math.Float64bits(0.2)}, graph.Unary{Fn: graph.LeakyStep, Bits: math.Float64bits(0.3)},
	graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(-1.5)}, graph.Unary{Fn: graph.Shift, Bits: math.Float64bits(0.7)},
	graph.Binary{Fn: graph.Add}, graph.Binary{Fn: graph.Sub}, graph.Binary{Fn: graph.Mul}, graph.Binary{Fn: graph.Div},
	graph.Binary{Fn: graph.Max}, graph.Binary{Fn: graph.Min}, graph.Binary{Fn: graph.Greater}, graph.Binary{Fn: graph.Equal},
	graph.Binary{Fn: graph.Add}, graph.Binary{Fn: graph.Mul}, graph.Binary{Fn: graph.Sub},
}

// randomGroup has operands of every shape that a matrix can be made of, some
// instructions and every kind of result.
func randomGroup(rnd *rand.Rand, rows, cols int) group {
	dims := graph.D(rows, cols)
	f := &plan.Fused{DType: graph.F32, Dims: dims, Consts: []float64{0.5}}
	g := group{f: f}
	for range 1 + rnd.IntN(4) {
		part := [...]graph.Shape{dims, graph.D(1, cols), graph.D(rows, 1), graph.D(1, 1), dims}[rnd.IntN(5)]
		f.Loads = append(f.Loads, plan.NewAccess(dims, part))
		x := make([]float32, part.Len())
		for i := range x {
			if i%19 > 0 { // and some zeros
				x[i] = float32(rnd.NormFloat64())
			}
		}
		g.in = append(g.in, x)
	}
	for range 1 + rnd.IntN(9) {
		n := f.Registers()
		pick := func() int {
			if rnd.IntN(2) == 0 {
				return n - 1
			}
			return rnd.IntN(n)
		}
		c := plan.Instr{Op: machineOps[rnd.IntN(len(machineOps))], X: pick()}
		if u, ok := c.Op.(graph.Unary); ok && (u.Fn == graph.Step || u.Fn == graph.LeakyStep) { // of a rectifier, mostly
			c.X = rnd.IntN(len(f.Loads))
			f.Code = append(f.Code, c)
			c = plan.Instr{Op: graph.Binary{Fn: graph.Mul}, X: n, Y: pick()}
		}
		if _, ok := c.Op.(graph.Binary); ok {
			c.Y = pick()
		}
		f.Code = append(f.Code, c)
	}
	code := func() int { return f.Registers() - 1 - rnd.IntN(len(f.Code)) }
	f.Stores = []int{f.Registers() - 1, code()}
	for _, part := range []graph.Shape{graph.D(1, cols), graph.D(rows, 1), graph.D(1, 1)} {
		if rnd.IntN(2) == 0 {
			f.Sums = append(f.Sums, plan.Reduction{Fn: graph.ReduceSum, Reg: code(), Access: plan.NewAccess(dims, part)})
		}
	}
	return g
}

// run computes the group, in place of the first full operand if inPlace, with
// or without the machine, and returns the results.
func (g group) run(t *testing.T, jobs *threads.Jobs, withMachine, inPlace bool) (outs [][]float32) {
	place := func(x []float32) array.Place { return array.Place{Mem: unsafe.Pointer(&x[0]), DType: graph.F32} }
	var in, out []array.Place
	at := -1
	for i, x := range g.in {
		x = append([]float32(nil), x...)
		in = append(in, place(x))
		if at < 0 && inPlace && g.f.Loads[i].Full() {
			at, outs = i, append(outs, x)
		}
	}
	for i := range len(g.f.Stores) + len(g.f.Sums) {
		n := g.f.Dims.Len()
		if k := i - len(g.f.Stores); k >= 0 {
			n = resultLen(g.f.Sums[k].Access)
		}
		if i > 0 || at < 0 {
			outs = append(outs, make([]float32, n))
		}
		out = append(out, place(outs[i]))
	}
	k := newFused(jobs, g.f, in, out, vec.Float32(), unsafe.Pointer(unsafe.SliceData(make([]float64, Scratch(g.f, jobs)/8+1))))
	if withMachine && k.code == nil && machine.Available() && k.block >= machine.Width {
		t.Fatalf("the machine does not take\n%v", g.f.Code)
	}
	if !withMachine {
		k.code = nil
	}
	for w := range jobs.Threads {
		k.Attach(w, unsafe.Pointer(unsafe.SliceData(make([]float64, k.Buffer()/8+1))))
	}
	for range 1 + b2i(!inPlace) { // the second run must not see the first
		if err := k.Run(); err != nil {
			t.Fatal(err)
		}
	}
	return outs
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// FuzzMachine runs random groups by the machine and by the interpreter, which do
// the same operations: equal bits, and sums that are equal but for their order.
func FuzzMachine(f *testing.F) {
	if !machine.Available() {
		f.Skip("no machine: no AVX2 with FMA, or no assembly")
	}
	team := threads.NewTeam(2)
	f.Cleanup(team.Close)
	jobs := threads.NewJobs(team, 0)
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		shape := [][2]int{{1, 700}, {300, 3}, {67, 96}, {41, 100}, {5, 2304}, {3, 8192}, {9, 4100}, {33, 576}, {700, 1}, {5, 1789}, {4, 2503}}[rnd.IntN(11)]
		g := randomGroup(rnd, shape[0], shape[1])
		for _, inPlace := range []bool{false, true} {
			want, got := g.run(t, jobs, false, inPlace), g.run(t, jobs, true, inPlace)
			for i := range want {
				same := arraytest.SameBits
				if i >= len(g.f.Stores) {
					same = sameSum
				}
				if at, ok := same(got[i], want[i]); !ok {
					t.Fatalf("%v, in place %v: result %d at %d is %v, want %v\n%v\nloads %v stores %v sums %v",
						shape, inPlace, i, at, got[i][at], want[i][at], g.f.Code, g.f.Loads, g.f.Stores, g.f.Sums)
				}
			}
		}
	})
}

// sameSum is the first place where x and y are not the same sums, but for the
// order: what cancels leaves less than 10⁻⁹ of the terms, which are small.
func sameSum(x, y []float32) (int, bool) {
	for i := range x {
		d := math.Abs(float64(x[i]) - float64(y[i]))
		if (x[i] == x[i] || y[i] == y[i]) && x[i] != y[i] && !(d <= 2e-7*math.Abs(float64(y[i]))+1e-5) {
			return i, false
		}
	}
	return 0, true
}

// Blocks follow the runs of operands, where those are long enough.
func TestBlocks(t *testing.T) {
	whole := 1000 // whole periods, and with the machine whole strips too
	if machine.Available() {
		whole = 3200
	}
	for _, tt := range []struct {
		dims, part graph.Shape
		want, run  int
	}{
		{graph.D(100, 1000), graph.D(100, 1000), 1024, 0},
		{graph.D(65536, 96), graph.D(1, 96), 768, 0},
		{graph.D(65536, 100), graph.D(1, 100), whole, 0},
		{graph.D(512, 8192), graph.D(1, 8192), 1024, 0},
		{graph.D(512, 8192), graph.D(512, 1), 1024, 0},
		{graph.D(384, 2304), graph.D(384, 1), 1152, 0},
		{graph.D(64, 27), graph.D(64, 1), 1024, 0},
		{graph.D(608, 1789), graph.D(608, 1), 896, 1789},
		{graph.D(608, 10007), graph.D(608, 1), 1024, 10007},
		{graph.D(608, 10007), graph.D(1, 10007), 1024, 10007},
		{graph.D(608, 1789), graph.D(1, 1789), 1789, 0},
	} {
		f := &plan.Fused{DType: graph.F32, Dims: tt.dims, Loads: []plan.Access{plan.NewAccess(tt.dims, tt.part)}}
		if got, run := blockOf(f); got != tt.want || run != tt.run {
			t.Errorf("%s: blocks of %d in runs of %d, want %d in %d", fmt.Sprint(tt.dims, tt.part), got, run, tt.want, tt.run)
		}
	}
}

// Blocks hold every point once; where an operand is said to be one run in each it is; and
// where sums go down bands, the blocks of a band have the same columns.
func TestBlocksAreRuns(t *testing.T) {
	for _, tt := range []struct{ dims, load, other, sum graph.Shape }{
		{graph.D(2, 1283, 11), graph.D(2, 1, 1), graph.D(1, 1, 11), graph.D(1, 1, 11)},
		{graph.D(2, 1283, 11), graph.D(2, 1, 1), graph.D(1, 1, 11), graph.D(1, 1283, 11)}, // no blocks divide a row
		{graph.D(3, 1283, 10), graph.D(3, 1, 1), graph.D(1, 1, 10), graph.D(3, 1, 1)},
		{graph.D(7, 1300, 100), graph.D(1, 1300, 1), graph.D(7, 1, 1), graph.D(1, 1, 100)},
		{graph.D(2, 768, 1283), graph.D(2, 768, 1), graph.D(2, 1, 1), graph.D(1, 768, 1283)}, // both bands and runs of rows
		{graph.D(512, 8192), graph.D(1, 8192), graph.D(512, 8192), graph.D(1, 8192)},
		{graph.D(5, 3, 2), graph.D(5, 1, 2), graph.D(1, 3, 1), graph.D(1, 1, 1)},
	} {
		access := func(part graph.Shape) plan.Access { return plan.NewAccess(tt.dims, part) }
		f := &plan.Fused{DType: graph.F32, Dims: tt.dims, Loads: []plan.Access{access(tt.load), access(tt.other)}, Sums: []plan.Reduction{{Access: access(tt.sum)}}}
		o := orderOf(blocks(f))
		done := make([]bool, tt.dims.Len())
		for b := range o.count() {
			at, n := o.at(b)
			for i := at; i < at+n; i++ {
				if done[i] {
					t.Fatalf("%v: point %d is in two blocks", tt.dims, i)
				}
				done[i] = true
			}
			if band, _ := o.at(b / max(o.rows, 1) * o.rows); o.rows > 0 && at%o.cols != band%o.cols {
				t.Fatalf("%v: block %d begins in column %d, its band in %d", tt.dims, b, at%o.cols, band%o.cols)
			}
			for _, a := range append(f.Loads, f.Sums[0].Access) {
				for stride := range 2 {
					if !o.inRuns(a, stride) {
						continue
					}
					array.Runs(a, at, n, func(_, _, m, s int) {
						if m != n || s != stride {
							t.Fatalf("%v: of %v, %d of the %d points from %d on are a run of stride %d, want all, of %d", tt.dims, a, m, n, at, s, stride)
						}
					})
				}
			}
		}
		if i := slices.Index(done, false); i >= 0 {
			t.Errorf("%v: point %d is in no block", tt.dims, i)
		}
	}
}

// blocks is a group and how it is cut.
func blocks(f *plan.Fused) (*plan.Fused, int, int) {
	block, run := blockOf(f)
	return f, block, run
}

// Rows of any length, as the gradient of a cross-entropy has them: x·a + b where an
// index is the target's; a, b and the target are numbers of a row.
func BenchmarkRows(b *testing.B) {
	team := threads.NewTeam(1)
	b.Cleanup(team.Close)
	jobs := threads.NewJobs(team, 0)
	binary := func(fn graph.BinaryFn, x, y int) plan.Instr {
		return plan.Instr{Op: graph.Binary{Fn: fn}, X: x, Y: y}
	}
	for _, cols := range []int{1789, 10000, 10007} {
		b.Run(fmt.Sprint(cols), func(b *testing.B) {
			all, row, line := graph.D(40, cols), graph.D(40, 1), graph.D(1, cols)
			f := &plan.Fused{DType: graph.F32, Dims: all, Stores: []int{8},
				Code: []plan.Instr{binary(graph.Mul, 0, 1), binary(graph.Equal, 4, 2), binary(graph.Mul, 6, 3), binary(graph.Add, 5, 7)}}
			var in []array.Place
			of := func(s graph.Shape) array.Place {
				return array.Place{Mem: unsafe.Pointer(unsafe.SliceData(make([]float32, s.Len()))), DType: graph.F32}
			}
			for _, s := range []graph.Shape{all, row, row, row, line} {
				f.Loads = append(f.Loads, plan.NewAccess(all, s))
				in = append(in, of(s))
			}
			k := New(jobs, f, in, []array.Place{of(all)}, nil)
			k.Attach(0, unsafe.Pointer(unsafe.SliceData(make([]float64, k.Buffer()/8+1))))
			b.SetBytes(8 * int64(all.Len()))
			for b.Loop() {
				if err := k.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
