package plan

import (
	"math"

	"ebtrain/ddp/graph"
)

// A relay is pointwise work between collectives: it needs one, and is made for others
// alone. A sharded optimiser's step is full of them: a sum of gradients has come, a part of
// the weights moves, and the weights are gathered. They need not stand until nothing else
// is left to compute, as what waits does otherwise: once so much has been computed since a
// collective started that it has surely come, its relays run, and the next collectives
// travel beside the rest of the computing.
//
// What has surely come is guessed, alike on all ranks and all devices, from the sizes: a
// guess too late is what there was without it, one too early waits where other work was
// ready.
const (
	byteMoved = 8   // operations in the time in which a byte comes from memory or goes there
	byteSent  = 256 // in which a byte travels: 10 Gbit/s beside 300 GFLOP/s, or 100 GB/s beside 25 TFLOP/s
)

// relay is a relay whose collectives have surely come, -1 if there is none.
func (s *scheduler) relay() int {
	left := s.relays[:0]
	found := -1
	for _, i := range s.relays {
		switch {
		case s.ran[i]:
		case found < 0 && s.haveCome(i):
			found = i
		default:
			left = append(left, i)
		}
	}
	s.relays = left
	return found
}

// haveCome says whether so much has been computed that the collectives that i needs are
// surely over.
func (s *scheduler) haveCome(i int) bool {
	for _, d := range s.deps[i] {
		if s.isStart(d) && !s.waited[d] && s.over[d] > s.computed {
			return false
		}
	}
	return true
}

// sent notes that collective i has started: it travels behind those before it.
func (s *scheduler) sent(i int) {
	s.arrived = max(s.arrived, s.computed) + byteSent*float64(s.bytes(s.units[i].in))
	s.over[i] = s.arrived
}

// work is roughly how long a unit computes, in floating-point operations.
func (p *Plan) work(u node) float64 {
	size := func(v int) float64 { return float64(p.Values[v].Dims.Len()) }
	convolution := func(weight, image int) float64 {
		return 2 * size(image) * size(weight) / float64(p.Values[weight].Dims.At(0))
	}
	moved := byteMoved * float64(p.bytes(u.in)+p.bytes(u.out))
	switch u.op.(type) {
	case graph.Conv2D:
		return moved + convolution(u.in[1], u.out[0])
	case graph.Conv2DGradX:
		return moved + convolution(u.in[0], u.in[1])
	case graph.Conv2DGradW:
		return moved + convolution(u.out[0], u.in[1])
	case graph.MatMul: // M·K, K·N and M·N numbers
		return moved + 2*math.Sqrt(size(u.in[0])*size(u.in[1])*size(u.out[0]))
	}
	return moved
}
