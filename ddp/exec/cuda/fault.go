package cuda

import (
	"slices"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/kernel"
)

// faultBytes is the size of where a run's kernels tell of indices out of range, rounded up so
// that what follows is aligned. Some is there in any case, for what has no elements (place).
func (p *program) faultBytes() int {
	return max(1, (len(p.faulty)*kernel.FaultBytes+regionAlign-1)/regionAlign) * regionAlign
}

// faultAt is where those of step i do.
func (p *program) faultAt(i int) driver.Ptr {
	n, _ := slices.BinarySearch(p.faulty, i)
	return p.faults() + driver.Ptr(n*kernel.FaultBytes)
}

// fault is an index out of range that a run's kernels met, if any.
func (p *program) fault(f *flight) error {
	return p.named(nil, kernel.FaultOf(p.plan, f.slot.out.Bytes()[p.out.bytes:][:len(p.faulty)*kernel.FaultBytes]))
}
