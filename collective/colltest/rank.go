package colltest

import (
	"fmt"

	"ebtrain/collective"
)

// Rank is what one rank can do of the suite by itself, where each rank is a process:
// every request at some lengths, long vectors, rounding, and a random sequence out of
// step. All ranks of c call it; f's New and Open are not used.
func Rank(c collective.Comm, f Factory) error {
	f = f.filled()
	const long = 1025
	s, err := f.shelf(c, max(vectorBytes(collective.F64, c.Size()*long), 3<<20))
	if err != nil {
		return err
	}
	seed := 0
	for _, req := range requests(c.Size()) {
		for _, length := range []int{0, 1, 3, 64, long} {
			if seed++; req.Kind == collective.Barrier {
				continue
			}
			if req.Kind == collective.ReduceScatter || req.Kind == collective.AllGather {
				length *= c.Size()
			}
			p := []place{ordinary, allocated, mixed}[seed%3]
			if err := programStep(c, s.at(p, c.Rank()), req, length, seed); err != nil {
				return fmt.Errorf("%s, %d elements, %s memory: %w", req, length, p, err)
			}
		}
	}
	for _, req := range ramps(c.Size(), 3<<20-4) {
		if err := ramp(c, s.at(mixed, c.Rank()), req); err != nil {
			return fmt.Errorf("long %s: %w", req, err)
		}
	}
	in := reals(c.Size())
	for _, d := range []collective.DType{collective.F32, collective.F64, collective.BF16} {
		for _, op := range []collective.Op{collective.Sum, collective.Mean} {
			if err := f.round(c, d, op, in); err != nil {
				return fmt.Errorf("%s of %s: %w", op, d, err)
			}
		}
	}
	return randomProgram(c, s, 30)
}
