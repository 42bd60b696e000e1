package cuda

import (
	"encoding/binary"
	"fmt"
)

// faultBytes is where a run's kernels tell of an index out of range.
const faultBytes = 64

// fault is an index out of range that a run's kernels met, if any.
func (p *program) fault(f *flight) error {
	mem := f.slot.out.Bytes()[p.out.bytes:]
	n := int64(binary.LittleEndian.Uint64(mem))
	if n == 0 {
		return nil
	}
	index := int64(binary.LittleEndian.Uint64(mem[8:]))
	if n < 1 || n > int64(len(p.steps)) {
		return p.named(nil, fmt.Errorf("a kernel reports a fault of step %d of %d", n-1, len(p.steps)))
	}
	return p.named(&p.steps[n-1], fmt.Errorf("index %d is out of range", index))
}
