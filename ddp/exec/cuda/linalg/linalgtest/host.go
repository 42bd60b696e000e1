package linalgtest

import (
	"encoding/json"
	"unsafe"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// memory is device memory as the host sees it: on the doubles it is the host's.
func memory(p cuda.Ptr, bytes int64) []byte {
	at := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	return unsafe.Slice((*byte)(at), bytes)
}

// Cast converts numbers on a stream of the doubles.
func Cast(s *cuda.Stream, dst cuda.Ptr, to graph.DType, src cuda.Ptr, from graph.DType, n int64) error {
	return s.HostFunc(func() {
		copy(memory(dst, n*int64(to.Size())), Encode(Decode(memory(src, n*int64(from.Size())), from), to))
	})
}

// Move makes columns of an image, or an image of columns, on a stream of the doubles.
func Move(s *cuda.Stream, c linalg.Columns, dst, src cuda.Ptr) error {
	nd, ns := c.Lens()
	return s.HostFunc(func() {
		copy(memory(dst, nd*int64(c.To.Size())), Encode(Columns(c, Decode(memory(src, ns*int64(c.From.Size())), c.From)), c.To))
	})
}

// Plain is a kernel for any problem, on a stream of the doubles: the reference.
type Plain struct{ P linalg.Problem }

// NewPlain is a choose.Options.Plain.
func NewPlain(p linalg.Problem) (linalg.Candidate, error) { return Plain{p}, nil }

func (k Plain) String() string { return "reference" }

// Workspace is some bytes, which are overwritten.
func (k Plain) Workspace() int64 { return 100 }

func (k Plain) Enqueue(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error {
	return s.HostFunc(func() {
		clear(memory(work, 100))
		t := k.P.Types()
		n, na, nb := k.P.Lens()
		a, b := Decode(memory(o.A, na*int64(t.A.Size())), t.A), Decode(memory(o.B, nb*int64(t.B.Size())), t.B)
		z, err := Reference(k.P, a, b)
		if err != nil {
			panic(err) // the problem was checked
		}
		copy(memory(o.Dst, n*int64(t.Dst.Size())), Encode(z, t.Dst))
	})
}

func (k Plain) Saved() json.RawMessage { return nil }

func (k Plain) Close() error { return nil }
