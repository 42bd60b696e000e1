package cuda

import "ebtrain/ddp/exec/cuda/kernel"

// faultBytes is where a run's kernels tell of an index out of range, rounded up so
// that what follows is aligned.
const faultBytes = (kernel.FaultBytes + regionAlign - 1) / regionAlign * regionAlign

// fault is an index out of range that a run's kernels met, if any.
func (p *program) fault(f *flight) error {
	return p.named(nil, kernel.FaultOf(p.plan, f.slot.out.Bytes()[p.out.bytes:][:kernel.FaultBytes]))
}
