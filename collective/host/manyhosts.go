package host

import (
	"context"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// consent compares h with the other hosts. Every local rank calls it.
func (c *Comm) consent(ctx context.Context, h named) error {
	if c.mesh != nil {
		if err := c.mesh.ask(h); err != nil {
			return err
		}
		if err := c.mesh.agree(); err != nil {
			return err
		}
	}
	return c.barrier(ctx)
}

// manyHosts carries out req where ranks live on several hosts: the ranks of a
// host meet in its arena, the leaders exchange, all copy the result.
func (c *Comm) manyHosts(seq uint64, req collective.Request) error {
	v, h := c.vectorOf(seq, req)
	x := exchange{Comm: c, v: v, h: h, req: req}
	if len(v.data) == 0 {
		ctx := context.Background() // the runner's
		c.publish(h, req.Label)
		if err := c.meet(ctx); err != nil {
			return err
		}
		return c.consent(ctx, x.named())
	}
	total, chunk := len(v.data), c.arena.chunk
	if req.Kind == collective.ReduceScatter || req.Kind == collective.AllGather {
		total, chunk = v.part, max(8, c.arena.chunk/c.size/8*8)
	}
	for at := 0; at < total; at += chunk {
		if err := x.piece(at, min(chunk, total-at)); err != nil {
			return err
		}
		c.round++
	}
	return nil
}

// exchange is a collective among several hosts. The runner carries it out, for
// no caller in particular.
type exchange struct {
	*Comm
	v   vector
	h   localHeader
	req collective.Request
	met bool
}

func (x *exchange) named() named { return named{x.h.header, labelOf(x.req.Label)} }

func (x *exchange) piece(at, n int) error {
	switch x.req.Kind {
	case collective.AllReduce:
		return x.allReduce(at, n)
	case collective.ReduceScatter:
		return x.reduceScatter(at, n)
	case collective.AllGather:
		return x.allGather(at, n)
	}
	return x.broadcast(at, n)
}

// barrier waits for all ranks of this host.
func (x *exchange) barrier() error { return x.Comm.barrier(context.Background()) }

// ready is the barrier after which staged data can be read. The first one of
// a collective also compares the ranks' requests.
func (x *exchange) ready() error {
	if x.met {
		return x.barrier()
	}
	x.met = true
	x.publish(x.h, x.req.Label)
	if err := x.meet(context.Background()); err != nil || x.mesh == nil {
		return err
	}
	return x.mesh.ask(x.named())
}

// leaders is the step in which the leaders exchange, between two barriers.
func (x *exchange) leaders(do func(m *mesh) error) error {
	if err := x.barrier(); err != nil {
		return err
	}
	if x.mesh != nil {
		if err := do(x.mesh); err != nil {
			return err
		}
	}
	return x.barrier()
}

// jobs are the two halves of a reduction: within a host, to the accumulator's
// type and without division, and then between hosts.
func (x *exchange) jobs() (within, between reduce.Job) {
	whole := x.job(x.req)
	wide := reduce.Accumulator(whole.To)
	return reduce.Job{From: whole.From, To: wide, Op: whole.Op},
		reduce.Job{From: wide, To: whole.To, Op: whole.Op, Div: whole.Div}
}

func (x *exchange) allReduce(at, n int) error {
	x.stage(x.v, x.req, at, n)
	if err := x.ready(); err != nil {
		return err
	}
	within, between := x.jobs()
	size, wide, elems := x.v.size, within.To.Size(), n/x.v.size
	lo, hi := share(elems, len(x.headers), x.topo.local, 64)
	for l := range x.views {
		x.views[l] = x.view(l, at, n)[lo*size : hi*size]
	}
	within.Run(x.arena.partial()[lo*wide:hi*wide], x.views, &x.scratch)
	result := x.arena.result(x.round)
	err := x.leaders(func(m *mesh) error {
		cuts := m.scratch.shares(elems, len(m.links))
		if err := m.reduceScatter(between, result, x.arena.partial(), cuts); err != nil {
			return err
		}
		return m.allGather(result, size, cuts)
	})
	if err == nil {
		copy(x.v.data[at:], result[:n])
	}
	return err
}

// reduceScatter reduces n bytes of every part. In partial and result the
// parts lie in the order host by host.
func (x *exchange) reduceScatter(at, n int) error {
	part := x.v.part
	x.stage(x.v, x.req, at, n)
	if err := x.ready(); err != nil {
		return err
	}
	within, between := x.jobs()
	elems, wide := n/x.v.size, within.To.Size()
	for q := range x.size {
		pos := x.topo.position[q]
		if pos%len(x.headers) != x.topo.local {
			continue // another rank of this host does it
		}
		x.lookAtParts(x.v, q, at, n)
		within.Run(x.arena.partial()[pos*elems*wide:(pos+1)*elems*wide], x.views, &x.scratch)
	}
	result := x.arena.result(x.round)
	err := x.leaders(func(m *mesh) error {
		return m.reduceScatter(between, result, x.arena.partial(), m.scratch.byRanks(x.topo, elems))
	})
	if err == nil {
		copy(x.v.data[x.rank*part+at:], result[x.topo.position[x.rank]*n:][:n])
	}
	return err
}

func (x *exchange) allGather(at, n int) error {
	part := x.v.part
	result := x.arena.result(x.round)
	copy(result[x.topo.position[x.rank]*n:], x.v.data[x.rank*part+at:][:n])
	if err := x.ready(); err != nil {
		return err
	}
	err := x.leaders(func(m *mesh) error {
		return m.allGather(result, 1, m.scratch.byRanks(x.topo, n))
	})
	if err != nil {
		return err
	}
	for q := range x.size {
		if q != x.rank {
			copy(x.v.data[q*part+at:], result[x.topo.position[q]*n:][:n])
		}
	}
	return nil
}

func (x *exchange) broadcast(at, n int) error {
	result := x.arena.result(x.round)[:n]
	if x.rank == x.req.Root {
		copy(result, x.v.data[at:at+n])
	}
	if err := x.ready(); err != nil {
		return err
	}
	err := x.leaders(func(m *mesh) error { return m.broadcast(result, x.topo.hostOf[x.req.Root]) })
	if err == nil && x.rank != x.req.Root {
		copy(x.v.data[at:at+n], result)
	}
	return err
}
