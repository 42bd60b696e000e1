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

// reduceScatter reduces a copy of its input and keeps this rank's part of it.
func reduceScatter(op graph.ReduceScatter, comm collective.Comm, in, out *value) func(context.Context) error {
	return throughVector(collective.Request{Kind: collective.ReduceScatter, Op: op.Op, Label: op.Label}, comm, in.typ,
		func(flat *value, _ int) { copy(flat.f, in.f) },
		func(flat *value, at int) { copy(out.f, flat.f[at:]) }, len(out.f))
}

// allGather lays its input at this rank's part of its output, and gathers there.
func allGather(op graph.AllGather, comm collective.Comm, in, out *value) func(context.Context) error {
	return throughVector(collective.Request{Kind: collective.AllGather, Label: op.Label}, comm, out.typ,
		func(flat *value, at int) { copy(flat.f[at:], in.f) },
		func(flat *value, _ int) { copy(out.f, flat.f) }, len(in.f))
}

// throughVector runs a collective on a vector of type t of its own, of which this
// rank has the part of n elements that begins at "at".
func throughVector(req collective.Request, comm collective.Comm, t graph.Type, fill, take func(flat *value, at int), n int) func(context.Context) error {
	flat, buf := newValue(t), exec.NewTensor(t)
	world, rank := exec.Ranks(comm)
	req.Vec = collective.Vec{Type: t.DType, Len: len(flat.f), Ptr: unsafe.Pointer(unsafe.SliceData(buf.Bytes()))}
	return func(ctx context.Context) error {
		fill(flat, rank*n)
		if world > 1 {
			flat.store(buf)
			if err := collective.Do(ctx, comm, req); err != nil {
				return err
			}
			flat.load(buf)
		}
		take(flat, rank*n)
		return nil
	}
}

// part copies this rank's part of its input.
func part(rank int, in, out *value) func(context.Context) error {
	return func(context.Context) error {
		copy(out.f, in.f[rank*len(out.f):])
		return nil
	}
}

// placed is zeros but for this rank's part.
func placed(rank int, in, out *value) func(context.Context) error {
	return func(context.Context) error {
		out.zero()
		copy(out.f[rank*len(in.f):], in.f)
		return nil
	}
}
