package linalgtest

import (
	"context"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// Runner is what can be run: a candidate, or a kernel that was chosen.
type Runner interface {
	Workspace() int64
	Enqueue(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error
}

// Device is a device with a stream, for a test. Clean is called when both are closed.
func Device(t *testing.T, clean func()) (*cuda.Device, *cuda.Stream) {
	t.Helper()
	dev, err := cuda.OpenDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		clean()
	})
	return dev, s
}

// Arrays are a problem's operands and result in device memory, of exactly their size,
// and a workspace.
type Arrays struct {
	t      *testing.T
	s      *cuda.Stream
	Places linalg.Operands
	Work   cuda.Ptr
	dst    int64
	of     graph.DType
	pieces []cuda.Ptr
}

// NewArrays puts numbers where a candidate for a problem can use them.
func NewArrays(t *testing.T, s *cuda.Stream, k Runner, p linalg.Problem, a, b []float64) *Arrays {
	t.Helper()
	n, _, _ := p.Lens()
	ty := p.Types()
	x := &Arrays{t: t, s: s, dst: n, of: ty.Dst}
	x.Places = linalg.Operands{Dst: x.alloc(n * int64(ty.Dst.Size())), A: x.put(Encode(a, ty.A)), B: x.put(Encode(b, ty.B))}
	if w := k.Workspace(); w > 0 {
		x.Work = x.alloc(w)
	}
	return x
}

// alloc makes room at a multiple of Align that is none of more, up to the end of a piece
// of memory.
func (x *Arrays) alloc(bytes int64) cuda.Ptr {
	x.t.Helper()
	p, err := x.s.Device().Alloc(bytes + linalg.Align)
	if err != nil {
		x.t.Fatal(err)
	}
	x.pieces = append(x.pieces, p)
	return p + linalg.Align
}

func (x *Arrays) put(raw []byte) cuda.Ptr {
	x.t.Helper()
	p := x.alloc(int64(len(raw)))
	x.pinned(len(raw), func(h *cuda.Pinned) error {
		copy(h.Bytes(), raw)
		return x.s.CopyIn(p, h, 0, len(raw))
	}, func([]byte) {})
	return p
}

// pinned gives host memory to a copy, waits for it, and then has it read.
func (x *Arrays) pinned(n int, queue func(h *cuda.Pinned) error, read func(raw []byte)) {
	x.t.Helper()
	h, err := x.s.Device().AllocPinned(n)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := queue(h); err != nil {
		x.t.Fatal(err)
	}
	if err := x.s.Sync(context.Background()); err != nil {
		x.t.Fatal(err)
	}
	read(h.Bytes())
	if err := h.Free(); err != nil {
		x.t.Fatal(err)
	}
}

// Result is what the stream has computed.
func (x *Arrays) Result() (v []float64) {
	x.t.Helper()
	n := int(x.dst) * x.of.Size()
	x.pinned(n, func(h *cuda.Pinned) error { return x.s.CopyOut(h, 0, x.Places.Dst, n) }, func(raw []byte) { v = Decode(raw, x.of) })
	return v
}

// Free releases the memory.
func (x *Arrays) Free() {
	x.t.Helper()
	for _, p := range x.pieces {
		if err := x.s.Device().Free(p); err != nil {
			x.t.Error(err)
		}
	}
}

// Compute runs a candidate once, on a problem's numbers.
func Compute(t *testing.T, s *cuda.Stream, k Runner, p linalg.Problem, a, b []float64) []float64 {
	t.Helper()
	x := NewArrays(t, s, k, p, a, b)
	defer x.Free()
	if err := k.Enqueue(s, x.Places, x.Work); err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	return x.Result()
}
