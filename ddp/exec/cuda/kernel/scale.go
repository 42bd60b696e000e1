package kernel

import (
	"math"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// ScaleValue is the value that Scale's Memory.Value is asked for.
const ScaleValue = 0

// Scale is the kernel that multiplies n elements, of a floating-point type, by a
// number in place: what makes a mean of a sum. The array begins at a multiple of 16
// bytes.
func Scale(d graph.DType, n int, by float64) (Launch, error) {
	dims := graph.D(n)
	p := &plan.Plan{Values: []plan.Value{{DType: d, Dims: dims}}}
	f := &plan.Fused{DType: d, Dims: dims, Loads: []plan.Access{{}}, Stores: []int{1},
		Code: []plan.Instr{{Op: graph.Unary{Fn: graph.Scale, Bits: math.Float64bits(by)}}}}
	p.Steps = []plan.Step{{Op: f, In: []int{ScaleValue}, Out: []int{ScaleValue}}}
	l, err := For(p, 0)
	if err != nil || len(l) == 0 {
		return Launch{}, err
	}
	return l[0], nil
}
