package pointwise

import (
	"math"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// A result is not computed where an operand lies that is read later: by any operand of an
// instruction, or once more when all are done, to be stored or summed.
func TestLastRead(t *testing.T) {
	var mem [8]float32
	var in []array.Place
	for i := range mem {
		in = append(in, array.Place{Mem: unsafe.Pointer(&mem[i]), DType: graph.F32})
	}
	in[7].Mem = in[0].Mem // two operands in one place
	f := &plan.Fused{DType: graph.F32, Loads: make([]plan.Access, len(in)), Consts: []float64{2}, Code: []plan.Instr{
		{Op: graph.Binary{Fn: graph.Add}, X: 0, Y: 1},
		{Op: graph.Unary{Fn: graph.Neg}, X: 2},                  // its Y, 0, is no operand
		{Op: graph.Select{}, X: 9, Y: 3, Z: 4},                  // of the first result
		{Op: graph.Binary{Fn: graph.Mul}, X: 8, Y: 7},           // by the constant
		{Op: graph.Select{}, X: 3, Y: 12, Z: 11},                // of results
		{Op: graph.Binary{Fn: graph.Sub}, X: 11, Y: 1},          // again
		{Op: graph.Unary{Fn: graph.Square}, X: 12, Y: 99, Z: 0}, // nothing
	}, Stores: []int{5, 13}, Sums: []plan.Reduction{{Fn: graph.ReduceSum, Reg: 6}}}
	c := &fusing[float32, float64]{f: f}
	want := map[unsafe.Pointer]int{
		in[0].Mem: 3, in[1].Mem: 5, in[2].Mem: 1, in[3].Mem: 4, in[4].Mem: 2, in[5].Mem: len(f.Code), in[6].Mem: len(f.Code),
	}
	got := c.lastRead(in)
	for i, p := range in {
		if got[p.Mem] != want[p.Mem] {
			t.Errorf("operand %d is read last by %d, want %d", i, got[p.Mem], want[p.Mem])
		}
	}
}

// group64 runs a group of 64 points on one thread.
func group64(t *testing.T, f *plan.Fused, out []*exec.Tensor, in ...*exec.Tensor) {
	t.Helper()
	places := func(ts []*exec.Tensor) (all []array.Place) {
		for _, x := range ts {
			all = append(all, array.Place{Mem: unsafe.Pointer(unsafe.SliceData(x.Bytes())), DType: x.Type.DType, Dims: x.Type.Shape})
		}
		return all
	}
	f.Dims = graph.D(64)
	for range in {
		f.Loads = append(f.Loads, plan.NewAccess(f.Dims, f.Dims))
	}
	team := threads.NewTeam(1)
	defer team.Close()
	k := New(threads.NewJobs(team, 0), f, places(in), places(out), nil)
	k.Attach(0, unsafe.Pointer(unsafe.SliceData(exec.NewTensor(graph.T(graph.U8, k.Buffer())).Bytes())))
	if err := k.Run(); err != nil {
		t.Fatal(err)
	}
}

// What is stored twice is written to both places.
func TestStoredTwice(t *testing.T) {
	x, y, z := exec.NewTensor(graph.T(graph.F32, 64)), exec.NewTensor(graph.T(graph.F32, 64)), exec.NewTensor(graph.T(graph.F32, 64))
	for i := range 64 {
		x.SetAt(i, float64(i))
	}
	group64(t, &plan.Fused{DType: graph.F32, Code: []plan.Instr{{Op: graph.Unary{Fn: graph.Neg}}}, Stores: []int{1, 1}}, []*exec.Tensor{y, z}, x)
	for i := range 64 {
		if y.At(i) != -float64(i) || z.At(i) != -float64(i) {
			t.Errorf("element %d is %v and %v, want %v twice", i, y.At(i), z.At(i), -float64(i))
		}
	}
}

// Numbers of bfloat16 are rounded after every op, not when they are stored alone: 1 + 2⁻⁸ is
// 1, and a half less is a half, though there is a number for 2⁻⁸ more.
func TestBF16OpByOp(t *testing.T) {
	x, y := exec.NewTensor(graph.T(graph.BF16, 64)), exec.NewTensor(graph.T(graph.BF16, 64))
	for i := range 64 {
		x.SetAt(i, 1)
		y.SetAt(i, 99)
	}
	shift := func(a float64) graph.Unary { return graph.Unary{Fn: graph.Shift, Bits: math.Float64bits(a)} }
	group64(t, &plan.Fused{DType: graph.BF16, Code: []plan.Instr{{Op: shift(0x1p-8)}, {Op: shift(-0.5), X: 1}}, Stores: []int{2}}, []*exec.Tensor{y}, x)
	for i := range 64 {
		if y.At(i) != 0.5 {
			t.Errorf("element %d is %v, want a half", i, y.At(i))
		}
	}
}

// A result that belongs where an operand lies is written there when nothing reads the
// operand any more.
func TestComputedWhereOperandLies(t *testing.T) {
	x, y, z := exec.NewTensor(graph.T(graph.F32, 64)), exec.NewTensor(graph.T(graph.F32, 64)), exec.NewTensor(graph.T(graph.F32, 64))
	for i := range 64 {
		x.SetAt(i, float64(i))
		y.SetAt(i, 1)
	}
	group64(t, &plan.Fused{DType: graph.F32, Code: []plan.Instr{
		{Op: graph.Binary{Fn: graph.Add}, X: 0, Y: 1}, {Op: graph.Binary{Fn: graph.Mul}, X: 2, Y: 0},
	}, Stores: []int{2, 3}}, []*exec.Tensor{x, z}, x, y)
	for i := range 64 {
		if n := float64(i); x.At(i) != n+1 || z.At(i) != (n+1)*n {
			t.Errorf("element %d is %v and %v, want %v and %v", i, x.At(i), z.At(i), n+1, (n+1)*n)
		}
	}
}

// A number of a bfloat16 group is a bfloat16: 1 + 3·2⁻⁹ is 1 + 2⁻⁷, though 1 less it is one.
func TestBF16Number(t *testing.T) {
	x, y := exec.NewTensor(graph.T(graph.BF16, 64)), exec.NewTensor(graph.T(graph.BF16, 64))
	for i := range 64 {
		x.SetAt(i, 1)
	}
	group64(t, &plan.Fused{DType: graph.BF16, Consts: []float64{1 + 0x3p-9}, Code: []plan.Instr{{Op: graph.Binary{Fn: graph.Sub}, X: 0, Y: 1}}, Stores: []int{2}}, []*exec.Tensor{y}, x)
	for i := range 64 {
		if y.At(i) != -0x1p-7 {
			t.Errorf("element %d is %v, want %v", i, y.At(i), -0x1p-7)
		}
	}
}
