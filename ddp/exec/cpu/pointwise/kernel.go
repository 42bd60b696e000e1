package pointwise

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/pointwise/vec"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// Kernel runs a group.
type Kernel interface {
	Run() error
	// Buffer is the memory, in bytes, that each thread needs while the group runs;
	// groups that do not run at the same time may have the same memory.
	Buffer() int
	// Attach gives thread w that memory, before the first run.
	Attach(w int, mem unsafe.Pointer)
}

// New makes the kernel of a group, in the type that suits its elements, from the
// places of its operands to those of its results; scratch is memory of Scratch
// bytes.
func New(jobs *threads.Jobs, f *plan.Fused, in, out []array.Place, scratch unsafe.Pointer) Kernel {
	switch {
	case f.DType == graph.F32:
		return newFused(jobs, f, in, out, vec.Float32(), scratch)
	case f.DType.IsFloat():
		return newFused(jobs, f, in, out, vec.Float64(), scratch)
	}
	return newFused(jobs, f, in, out, vec.Int64(), scratch)
}

// Scratch is the memory, in bytes, of a group's partial sums.
func Scratch(f *plan.Fused, jobs *threads.Jobs) (n int) {
	for _, r := range f.Sums {
		n += partialBytes(resultLen(r.Access), jobs.Parts)
		if r.Centred { // perhaps its mean
			n += partialBytes(resultLen(r.Access), jobs.Parts)
		}
	}
	return n
}
