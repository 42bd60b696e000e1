package pointwise

import (
	"testing"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
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
