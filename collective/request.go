package collective

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// Check says whether r is well formed in a group of size ranks. The error
// wraps ErrInvalid and says what was expected.
func (r Request) Check(size int) error {
	switch r.Kind {
	case Barrier:
		return nil
	case AllReduce, ReduceScatter, AllGather, Broadcast:
	default:
		return fmt.Errorf("%w: kind is %s, expected one of barrier, all-reduce, reduce-scatter, all-gather, broadcast", ErrInvalid, r.Kind)
	}
	if err := r.Vec.check(); err != nil {
		return err
	}
	if r.Kind == AllReduce || r.Kind == ReduceScatter {
		if r.Op < Sum || r.Op > Min {
			return fmt.Errorf("%w: op is %s, expected one of sum, mean, max, min", ErrInvalid, r.Op)
		}
		if r.Op == Mean && !r.Vec.Type.IsFloat() {
			return fmt.Errorf("%w: mean of %s, expected a floating-point type (reduce with sum and divide)", ErrInvalid, r.Vec.Type)
		}
	}
	if r.Kind == Broadcast && (r.Root < 0 || r.Root >= size) {
		return fmt.Errorf("%w: root is %d, expected 0 to %d", ErrInvalid, r.Root, size-1)
	}
	if (r.Kind == ReduceScatter || r.Kind == AllGather) && r.Vec.Len%size != 0 {
		return fmt.Errorf("%w: %s of %d elements on %d ranks, expected a multiple of %d (pad the vector)", ErrInvalid, r.Kind, r.Vec.Len, size, size)
	}
	return nil
}

func (v Vec) check() error {
	if v.Type < F32 || v.Type > U8 {
		return fmt.Errorf("%w: element type is %s, expected one of f32, f64, bf16, i32, i64, u8", ErrInvalid, v.Type)
	}
	if hi, lo := bits.Mul64(uint64(v.Len), uint64(v.Type.Size())); v.Len < 0 || hi != 0 || lo > 1<<47 {
		return fmt.Errorf("%w: vector of %d elements, expected 0 to 2^47 bytes", ErrInvalid, v.Len)
	}
	if v.Len > 0 && v.Ptr == nil {
		return fmt.Errorf("%w: vector of %d elements with a nil pointer", ErrInvalid, v.Len)
	}
	if uintptr(v.Ptr)%uintptr(v.Type.Size()) != 0 {
		return fmt.Errorf("%w: vector of %s at %p, expected an address that is a multiple of %d", ErrInvalid, v.Type, v.Ptr, v.Type.Size())
	}
	return nil
}

// String describes what r does, for people: "all-reduce sum f32[1024]".
// The label is not part of it.
func (r Request) String() string {
	switch r.Kind {
	case AllReduce, ReduceScatter:
		return fmt.Sprintf("%s %s %s[%d]", r.Kind, r.Op, r.Vec.Type, r.Vec.Len)
	case Broadcast:
		return fmt.Sprintf("%s from %d %s[%d]", r.Kind, r.Root, r.Vec.Type, r.Vec.Len)
	case AllGather:
		return fmt.Sprintf("%s %s[%d]", r.Kind, r.Vec.Type, r.Vec.Len)
	}
	return r.Kind.String()
}

// Slice is elements i to j (exclusive) of v, in the same memory.
// It panics unless 0 ≤ i ≤ j ≤ v.Len.
func (v Vec) Slice(i, j int) Vec {
	if i < 0 || j < i || j > v.Len {
		panic(fmt.Sprintf("collective: slice [%d:%d] of a vector of %d elements", i, j, v.Len))
	}
	out := Vec{Type: v.Type, Len: j - i}
	if out.Len > 0 {
		out.Ptr = unsafe.Add(v.Ptr, i*v.Type.Size())
	}
	return out
}
