package host

import (
	"context"
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// vector is this rank's Vec in the collective under way.
type vector struct {
	data []byte
	size int  // bytes of an element
	len  int  // elements
	part int  // bytes of one rank's part
	out  bool // it lies outside of the memory from Alloc, or is small: it is staged
}

// vectorOf looks where req's vector lies and fills in this rank's header.
func (c *Comm) vectorOf(seq uint64, req collective.Request) (vector, localHeader) {
	h := localHeader{header: headerOf(seq, req), seg: -1}
	if req.Kind == collective.Barrier {
		return vector{}, h
	}
	v := vector{data: req.Vec.Bytes(), size: req.Vec.Type.Size(), len: req.Vec.Len, out: true}
	v.part = v.len / c.size * v.size
	if len(v.data) <= small && c.topo.oneHost() {
		return v, h
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.segments {
		if at, ok := s.offset(c.topo.local, req.Vec.Ptr, len(v.data)); ok {
			h.seg, h.offset, v.out = int32(i), uint64(at), false
			break
		}
	}
	return v, h
}

// begin is the first half of a collective among the ranks of one host, in
// which nobody waits: stage what the others need first, and enter the barrier.
// finish must follow.
func (c *Comm) begin(seq uint64, req collective.Request) {
	v, h := c.vectorOf(seq, req)
	total, chunk := c.extent(v, req.Kind)
	c.stage(v, req, 0, min(total, chunk))
	c.vec = v
	c.publish(h, req.Label)
}

// publish shows this rank's header to the others of its host and enters the
// first barrier of the collective: what was staged before can be read after it.
func (c *Comm) publish(h localHeader, name string) {
	s := c.arena.slot(c.topo.local)
	s.cell[h.seq&1].localHeader, s.label[h.seq&1] = h, labelOf(name)
	c.half, c.gate = h.seq&1, c.arena.enter()
}

// meet waits for the ranks of this host to enter the barrier of publish, and
// compares.
func (c *Comm) meet(ctx context.Context) error {
	if err := c.pass(ctx, c.gate); err != nil {
		return err
	}
	for l := range c.headers {
		c.headers[l] = c.arena.slot(l).cell[c.half].localHeader
	}
	for l := range c.headers {
		if c.headers[l].header != c.headers[0].header {
			return c.mismatch(l)
		}
	}
	return nil
}

// mismatch is the difference between the first rank of this host and the one
// with the local number l.
func (c *Comm) mismatch(l int) error {
	locals := c.topo.locals()
	started := func(l int) named { return named{c.headers[l].header, c.arena.slot(l).label[c.half]} }
	return &mismatchError{locals[l], fmt.Sprintf("rank %d started %s, rank %d started %s", locals[0], started(0), locals[l], started(l))}
}

// extent is what a collective of v walks through (all of it, or every part at
// the same time) and how much of that fits into a stage, in bytes.
func (c *Comm) extent(v vector, kind collective.Kind) (total, chunk int) {
	switch kind {
	case collective.ReduceScatter:
		return v.part, c.arena.chunk / c.size / 8 * 8
	case collective.AllGather:
		return v.part, c.arena.chunk
	}
	return len(v.data), c.arena.chunk
}

// stage copies what the other ranks need of v, n bytes from at on, to where
// they can read it.
func (c *Comm) stage(v vector, req collective.Request, at, n int) {
	if !v.out {
		return
	}
	to := c.arena.stage(c.topo.local, c.round)
	switch req.Kind {
	case collective.AllReduce:
		copy(to, v.data[at:at+n])
	case collective.ReduceScatter:
		for q := range c.size {
			copy(to[q*n:], v.data[q*v.part+at:][:n])
		}
	case collective.AllGather:
		copy(to, v.data[c.rank*v.part+at:][:n])
	case collective.Broadcast:
		if c.rank == req.Root {
			copy(to, v.data[at:at+n])
		}
	}
}

// finish is the second half of a collective: what lies in memory from Alloc on
// all ranks is done where it lies, anything else piece by piece.
func (c *Comm) finish(ctx context.Context, req collective.Request) error {
	if err := c.meet(ctx); err != nil || req.Kind == collective.Barrier {
		return err
	}
	v := c.vec
	all, some := c.located(req)
	total, chunk := c.extent(v, req.Kind)
	if all {
		chunk = total
	}
	for at := 0; at < total; at += chunk {
		n := min(chunk, total-at)
		if at > 0 {
			c.stage(v, req, at, n)
			if err := c.barrier(ctx); err != nil {
				return err
			}
		}
		if err := c.piece(ctx, v, req, at, n); err != nil {
			return err
		}
		c.round++
	}
	if some && req.Kind != collective.AllReduce { // nobody may change its vector while others read it
		return c.barrier(ctx)
	}
	return nil
}

// located says whether all, and whether any, of the vectors that others read
// lie in memory from Alloc.
func (c *Comm) located(req collective.Request) (all, some bool) {
	if req.Kind == collective.Broadcast {
		root := c.headers[req.Root].located()
		return root, root
	}
	all = true
	for _, h := range c.headers {
		all = all && h.located()
		some = some || h.located()
	}
	return all, some
}

// piece does n bytes from at on, after they were staged.
func (c *Comm) piece(ctx context.Context, v vector, req collective.Request, at, n int) error {
	switch req.Kind {
	case collective.AllReduce:
		return c.allReduce(ctx, v, req, at, n)
	case collective.ReduceScatter:
		c.lookAtParts(v, c.rank, at, n)
		c.job(req).Run(v.data[c.rank*v.part+at:][:n], c.views, &c.scratch)
	case collective.AllGather:
		for l := range c.headers {
			if l != c.rank {
				copy(v.data[l*v.part+at:], c.view(l, l*v.part+at, n))
			}
		}
	case collective.Broadcast:
		if c.rank != req.Root {
			copy(v.data[at:at+n], c.view(req.Root, at, n))
		}
	}
	return nil
}

// job is how req's elements are combined to the end.
func (c *Comm) job(req collective.Request) reduce.Job {
	j := reduce.Job{From: req.Vec.Type, To: req.Vec.Type, Op: req.Op}
	if req.Op == collective.Mean {
		j.Div = c.size
	}
	return j
}

// allReduce: every rank reduces its share of the piece and writes it to all. A
// small vector is reduced by every rank for itself.
func (c *Comm) allReduce(ctx context.Context, v vector, req collective.Request, at, n int) error {
	c.look(at, n)
	if len(v.data) <= small {
		c.job(req).Run(v.data, c.views, &c.scratch)
		return nil
	}
	c.reduceShare(c.job(req), n)
	if err := c.barrier(ctx); err != nil {
		return err
	}
	if v.out {
		copy(v.data[at:at+n], c.views[c.topo.local])
	}
	return nil
}

// view is the memory of local rank l at byte offset at of its vector, where
// that is staged the stage.
func (c *Comm) view(l, at, n int) []byte {
	h := c.headers[l]
	if !h.located() {
		return c.arena.stage(l, c.round)[:n]
	}
	from := int(h.offset) + at
	return c.segments[h.seg].of(l)[from : from+n]
}

// look points views at n bytes of all vectors of the host.
func (c *Comm) look(at, n int) {
	for l := range c.views {
		c.views[l] = c.view(l, at, n)
	}
}

// lookAtParts points views at n bytes of part q of all vectors of the host.
func (c *Comm) lookAtParts(v vector, q, at, n int) {
	for l, h := range c.headers {
		if h.located() {
			c.views[l] = c.view(l, q*v.part+at, n)
		} else {
			c.views[l] = c.view(l, 0, c.size*n)[q*n : q*n+n]
		}
	}
}

// tile is the number of bytes that are reduced and then copied to the other
// ranks while they are in the first-level cache.
const tile = 16 << 10

// reduceShare reduces this rank's share of the views, of n bytes, and copies it
// to all.
func (c *Comm) reduceShare(j reduce.Job, n int) {
	own, tiles := c.topo.local, c.tiles
	lo, hi := share(n, len(c.views), own, 64)
	for ; lo < hi; lo += tile {
		end := min(lo+tile, hi)
		for l, view := range c.views {
			tiles[l] = view[lo:end]
		}
		j.Run(tiles[own], tiles, &c.scratch)
		for l := range tiles {
			if l != own {
				copy(tiles[l], tiles[own])
			}
		}
	}
}
