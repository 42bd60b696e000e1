package ref

import (
	"context"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// allReduce copies its inputs into one flat buffer, reduces it over the ranks
// of comm, and copies it to its outputs. A world of one needs no buffer.
func allReduce(op graph.AllReduce, comm collective.Comm, in, out []*value) func(context.Context) error {
	if comm == nil || comm.Size() == 1 {
		return func(context.Context) error {
			for k := range in {
				copy(out[k].f, in[k].f)
			}
			return nil
		}
	}
	total := 0
	for _, x := range in {
		total += len(x.f)
	}
	flat := newValue(graph.T(in[0].typ.DType, total))
	buf := exec.NewTensor(flat.typ)
	vec := collective.Vec{Type: buf.Type.DType, Len: total, Ptr: unsafe.Pointer(unsafe.SliceData(buf.Bytes()))}
	return func(ctx context.Context) error {
		at := 0
		for _, x := range in {
			at += copy(flat.f[at:], x.f)
		}
		flat.store(buf)
		req := collective.Request{Kind: collective.AllReduce, Op: op.Op, Vec: vec, Label: op.Label}
		if err := collective.Do(ctx, comm, req); err != nil {
			return err
		}
		flat.load(buf)
		at = 0
		for _, y := range out {
			at += copy(y.f, flat.f[at:])
		}
		return nil
	}
}
