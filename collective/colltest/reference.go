package colltest

import (
	"fmt"
	"math"

	"ebtrain/collective"
)

// undefined marks an element that a collective may leave as anything.
var undefined = math.NaN()

// expected is what req leaves on each rank, given every rank's values.
func expected(req collective.Request, in [][]float64) [][]float64 {
	n, length := len(in), req.Vec.Len
	out := make([][]float64, n)
	for r := range out {
		out[r] = make([]float64, length)
		for i := range out[r] {
			switch req.Kind {
			case collective.AllReduce:
				out[r][i] = combine(req.Op, in, i)
			case collective.ReduceScatter:
				out[r][i] = undefined
				if i/(length/n) == r {
					out[r][i] = combine(req.Op, in, i)
				}
			case collective.AllGather:
				out[r][i] = in[i/(length/n)][i]
			case collective.Broadcast:
				out[r][i] = in[req.Root][i]
			}
		}
	}
	return out
}

// combine is element i of the reduction.
func combine(op collective.Op, in [][]float64, i int) float64 {
	x := in[0][i]
	for _, v := range in[1:] {
		switch op {
		case collective.Sum, collective.Mean:
			x += v[i]
		case collective.Max:
			x = math.Max(x, v[i])
		case collective.Min:
			x = math.Min(x, v[i])
		}
	}
	if op == collective.Mean {
		x /= float64(len(in))
	}
	return x
}

// compare demands got[i] = want[i] within tol, which may be nil for equality.
func compare(got, want []float64, tol func(i int) float64) error {
	for i, w := range want {
		if math.IsNaN(w) { // undefined
			continue
		}
		var allowed float64
		if tol != nil {
			allowed = tol(i)
		}
		if !(math.Abs(got[i]-w) <= allowed) {
			return fmt.Errorf("element %d of %d is %v, want %v ± %v", i, len(want), got[i], w, allowed)
		}
	}
	return nil
}

// whole is a small integer that depends on everything: sums of eight are
// exact in every type. Negative ones only where the type has them.
func whole(d collective.DType, seed, rank, i int) float64 {
	h := uint32(seed)*0x9E3779B1 ^ uint32(rank)*0x85EBCA77 ^ uint32(i)*0xC2B2AE3D
	h ^= h >> 15
	h *= 0x2C1B3C6D
	h ^= h >> 13
	if d == collective.U8 {
		return float64(h % 31)
	}
	return float64(h%31) - 15
}

// real is a number with a full mantissa, between -1 and 1.
func real(seed, rank, i int) float64 {
	x := math.Sin(float64(seed*7919+rank*104729+i) * 12.9898)
	return float64(float32(x))
}
