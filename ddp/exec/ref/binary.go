package ref

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// binary sets z[i] = fn(x[i], y[i]).
func binary[E number](op graph.Binary) kernel {
	f := pairFunction[E](op.Fn)
	return func(in, out []*value) error {
		x, y, z := elements[E](in[0]), elements[E](in[1]), elements[E](out[0])
		for k := range z {
			z[k] = f(x[k], y[k])
		}
		return nil
	}
}

func pairFunction[E number](fn graph.BinaryFn) func(x, y E) E {
	switch fn {
	case graph.Add:
		return func(x, y E) E { return x + y }
	case graph.Sub:
		return func(x, y E) E { return x - y }
	case graph.Mul:
		return func(x, y E) E { return x * y }
	case graph.Div: // floating-point only
		return func(x, y E) E { return x / y }
	case graph.Max:
		return func(x, y E) E { return max(x, y) }
	case graph.Min:
		return func(x, y E) E { return min(x, y) }
	case graph.Greater:
		return func(x, y E) E { return truth[E](x > y) }
	case graph.Equal:
		return func(x, y E) E { return truth[E](x == y) }
	}
	panic(fmt.Sprintf("ref: no binary function has number %d", fn))
}

func truth[E number](cond bool) E {
	if cond {
		return 1
	}
	return 0
}

// choose sets z[i] = x[i] where cond[i] ≠ 0, y[i] elsewhere.
func choose[E number](in, out []*value) error {
	cond, x, y, z := elements[E](in[0]), elements[E](in[1]), elements[E](in[2]), elements[E](out[0])
	for k := range z {
		if cond[k] != 0 {
			z[k] = x[k]
		} else {
			z[k] = y[k]
		}
	}
	return nil
}
