package host

import (
	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// consent compares h with the other hosts. Every local rank calls it.
func (c *Comm) consent(h header) error {
	if c.mesh != nil {
		if err := c.mesh.ask(h); err != nil {
			return err
		}
		if err := c.mesh.agree(); err != nil {
			return err
		}
	}
	return c.barrier()
}

// manyHosts carries out req where ranks live on several hosts: the ranks of a
// host meet in its arena, the leaders exchange, all copy the result.
func (c *Comm) manyHosts(seq uint64, req collective.Request) error {
	v, h := c.vectorOf(seq, req)
	if len(v.data) == 0 {
		if err := c.meet(h); err != nil {
			return err
		}
		return c.consent(h.header)
	}
	x := &exchange{Comm: c, v: v, h: h, req: req}
	switch req.Kind {
	case collective.AllReduce:
		return x.chunks(len(v.data), c.arena.chunk, x.allReduce)
	case collective.ReduceScatter:
		return x.chunks(x.part(), max(8, c.arena.chunk/c.size/8*8), x.reduceScatter)
	case collective.AllGather:
		return x.chunks(x.part(), max(8, c.arena.chunk/c.size/8*8), x.allGather)
	}
	return x.chunks(len(v.data), c.arena.chunk, x.broadcast)
}

// exchange is a collective among several hosts.
type exchange struct {
	*Comm
	v   vector
	h   localHeader
	req collective.Request
	met bool
}

// part is the number of bytes of one rank's part.
func (x *exchange) part() int { return x.v.len / x.size * x.v.size }

// chunks calls do for each piece of n bytes.
func (x *exchange) chunks(n, chunk int, do func(at, n int) error) error {
	for at := 0; at < n; at += chunk {
		if err := do(at, min(chunk, n-at)); err != nil {
			return err
		}
		x.round++
	}
	return nil
}

// ready is the barrier after which staged data can be read. The first one of
// a collective also compares the ranks' requests.
func (x *exchange) ready() error {
	if x.met {
		return x.barrier()
	}
	x.met = true
	if err := x.meet(x.h); err != nil || x.mesh == nil {
		return err
	}
	return x.mesh.ask(x.h.header)
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
	if x.v.out {
		copy(x.arena.stage(x.topo.local, x.round), x.v.data[at:at+n])
	}
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
		cuts := make([]int, len(m.links)+1)
		for h := range m.links {
			_, cuts[h+1] = share(elems, len(m.links), h, 64)
		}
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
	part := x.part()
	if x.v.out {
		s := x.arena.stage(x.topo.local, x.round)
		for q := range x.size {
			copy(s[q*n:], x.v.data[q*part+at:][:n])
		}
	}
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
		for l, h := range x.headers {
			if h.located() {
				x.views[l] = x.view(l, q*part+at, n)
			} else {
				x.views[l] = x.view(l, 0, x.size*n)[q*n : q*n+n]
			}
		}
		within.Run(x.arena.partial()[pos*elems*wide:(pos+1)*elems*wide], x.views, &x.scratch)
	}
	result := x.arena.result(x.round)
	err := x.leaders(func(m *mesh) error {
		return m.reduceScatter(between, result, x.arena.partial(), x.topo.cuts(elems))
	})
	if err == nil {
		copy(x.v.data[x.rank*part+at:], result[x.topo.position[x.rank]*n:][:n])
	}
	return err
}

func (x *exchange) allGather(at, n int) error {
	part := x.part()
	result := x.arena.result(x.round)
	copy(result[x.topo.position[x.rank]*n:], x.v.data[x.rank*part+at:][:n])
	if err := x.ready(); err != nil {
		return err
	}
	err := x.leaders(func(m *mesh) error {
		return m.allGather(result, 1, x.topo.cuts(n))
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
