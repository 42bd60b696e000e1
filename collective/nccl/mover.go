package nccl

import (
	"errors"
	"fmt"
	"math/bits"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

// mover puts collectives into streams. Nothing in it waits for the device.
type mover struct {
	nccl    *communicator
	dev     *cuda.Device
	memory  *memory
	kernels *kernels
	fixed   bool
	rank    int
	size    int
}

// scratch is where slices of others wait for their sum. What is started and what is
// enqueued have one each: nothing puts the streams of the two in an order, and no event
// could for a graph, whose launches nobody tells us of. Within each, streams do.
type scratch struct {
	at    cuda.Ptr // the newest of all
	bytes int64    // of it
	// Graphs hold addresses, so what was scratch once stays until the end.
	all []cuda.Ptr
}

// enqueue puts req, which all ranks put there, behind what is queued on s. Sums in a
// fixed order use room, which need has made large enough.
func (m *mover) enqueue(s *cuda.Stream, req collective.Request, room *scratch) error {
	if req.Vec.Len == 0 {
		return nil
	}
	if m.inOrder(req) {
		return m.enqueueInOrder(s, req, room)
	}
	v := req.Vec
	at, part, size := cuda.AddressOf(v), v.Len/m.size, v.Type.Size()
	mine := at + cuda.Ptr(m.rank*part*size)
	t, op := dtypes[v.Type], reductions[req.Op]
	switch req.Kind {
	case collective.AllReduce:
		err := m.nccl.launch(s, func(comm uintptr) (string, int) {
			return "ncclAllReduce", m.nccl.api.allReduce(comm, at, v.Len, t, op, s.Handle())
		})
		return m.thenDivide(err, s, req, at, v.Len)
	case collective.ReduceScatter:
		err := m.nccl.launch(s, func(comm uintptr) (string, int) {
			return "ncclReduceScatter", m.nccl.api.reduceScatter(comm, at, mine, part, t, op, s.Handle())
		})
		return m.thenDivide(err, s, req, mine, part)
	case collective.AllGather:
		return m.nccl.launch(s, func(comm uintptr) (string, int) {
			return "ncclAllGather", m.nccl.api.allGather(comm, mine, at, part, t, s.Handle())
		})
	case collective.Broadcast:
		return m.nccl.launch(s, func(comm uintptr) (string, int) {
			return "ncclBroadcast", m.nccl.api.broadcast(comm, at, v.Len, t, req.Root, s.Handle())
		})
	}
	return fmt.Errorf("%w: %s moves no data", collective.ErrInvalid, req.Kind)
}

// thenDivide makes a mean of the sum of n elements at p.
func (m *mover) thenDivide(err error, s *cuda.Stream, req collective.Request, p cuda.Ptr, n int) error {
	if err != nil || req.Op != collective.Mean || m.size == 1 {
		return err
	}
	return launch(s, m.kernels.divide[req.Vec.Type], arguments{dst: p, n: n, div: m.size})
}

// inOrder says whether req is a sum whose order matters and is ours.
func (m *mover) inOrder(req collective.Request) bool {
	reduces := req.Kind == collective.AllReduce || req.Kind == collective.ReduceScatter
	sums := req.Op == collective.Sum || req.Op == collective.Mean
	return m.fixed && m.size > 1 && reduces && sums && req.Vec.Type.IsFloat()
}

// cut is the part [lo, hi) of a vector that rank r sums.
func (m *mover) cut(req collective.Request, r int) (lo, hi int) {
	const unit = 64 // elements: slices begin at addresses that suit every access
	n := req.Vec.Len
	if req.Kind == collective.ReduceScatter {
		part := n / m.size
		return r * part, (r + 1) * part
	}
	units := (n + unit - 1) / unit
	return min(n, units*r/m.size*unit), min(n, units*(r+1)/m.size*unit)
}

// stride is how many elements of scratch a rank's slice takes.
func (m *mover) stride(req collective.Request) int {
	lo, hi := m.cut(req, m.rank)
	return (hi - lo + 63) / 64 * 64
}

// need makes room large enough for req, which cannot be done while a stream is captured.
func (m *mover) need(req collective.Request, room *scratch) error {
	if !m.inOrder(req) {
		return nil
	}
	bytes := int64(m.size) * int64(m.stride(req)*req.Vec.Type.Size())
	if bytes <= room.bytes {
		return nil
	}
	bytes = max(bytes, 1<<bits.Len64(uint64(bytes-1)))
	p, err := m.dev.Alloc(bytes)
	if err != nil {
		return fmt.Errorf("nccl: scratch for sums in a fixed order: %w", err)
	}
	room.at, room.bytes, room.all = p, bytes, append(room.all, p)
	return nil
}

// enqueueInOrder sums by the tree of package reduce: every rank gets its slice
// from all others, sums it, and sends the result to all.
func (m *mover) enqueueInOrder(s *cuda.Stream, req collective.Request, room *scratch) error {
	v, size := req.Vec, req.Vec.Type.Size()
	at := func(element int) cuda.Ptr { return cuda.AddressOf(v) + cuda.Ptr(element*size) }
	lo, hi := m.cut(req, m.rank)
	stride := m.stride(req)
	if int64(m.size)*int64(stride*size) > room.bytes {
		return errors.New("nccl: a sum in a fixed order that was not agreed on before: there is no scratch for it")
	}
	var out, back []transfer
	for q := range m.size {
		if q == m.rank {
			continue
		}
		a, b := m.cut(req, q)
		out = append(out, transfer{p: at(a), n: b - a, peer: q, out: true},
			transfer{p: room.at + cuda.Ptr(q*stride*size), n: hi - lo, peer: q})
		back = append(back, transfer{p: at(lo), n: hi - lo, peer: q, out: true}, transfer{p: at(a), n: b - a, peer: q})
	}
	if err := m.exchange(s, out, v.Type); err != nil {
		return err
	}
	sum := arguments{dst: at(lo), own: at(lo), parts: room.at, n: hi - lo, stride: stride, ranks: m.size, rank: m.rank}
	if req.Op == collective.Mean {
		sum.div = m.size
	}
	if err := launch(s, m.kernels.tree[v.Type], sum); err != nil || req.Kind == collective.ReduceScatter {
		return err
	}
	return m.exchange(s, back, v.Type)
}

// exchange is one group of sends and receives.
func (m *mover) exchange(s *cuda.Stream, ts []transfer, t collective.DType) error {
	return m.nccl.launch(s, func(comm uintptr) (string, int) {
		return m.nccl.api.exchange(comm, ts, dtypes[t], s.Handle())
	})
}

func (r *scratch) free(dev *cuda.Device) error {
	var errs []error
	for _, p := range r.all {
		errs = append(errs, dev.Free(p))
	}
	*r = scratch{}
	return errors.Join(errs...)
}
