package host

import (
	"errors"
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// vector is this rank's Vec in the collective under way.
type vector struct {
	data []byte
	size int  // bytes of an element
	len  int  // elements
	out  bool // it lies outside of the memory from Alloc, or is small: it is staged
}

// vectorOf looks where req's vector lies and fills in this rank's header.
func (c *Comm) vectorOf(seq uint64, req collective.Request) (vector, localHeader) {
	h := localHeader{header: headerOf(seq, req), seg: -1}
	if req.Kind == collective.Barrier {
		return vector{}, h
	}
	v := vector{data: req.Vec.Bytes(), size: req.Vec.Type.Size(), len: req.Vec.Len, out: true}
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

// meet publishes this rank's header, waits for the other ranks of the host,
// and compares. It is the first barrier of a collective: what was staged
// before it can be read after it.
func (c *Comm) meet(h localHeader) error {
	half := h.seq & 1
	c.arena.slot(c.topo.local).header[half] = h
	if err := c.barrier(); err != nil {
		return err
	}
	locals := c.topo.locals()
	for l := range locals {
		c.headers[l] = c.arena.slot(l).header[half]
	}
	for l, o := range c.headers {
		if !o.agrees(c.headers[0].header) {
			return &mismatchError{locals[l], fmt.Sprintf("rank %d started %s, rank %d started %s",
				locals[0], c.headers[0].header, locals[l], o.header)}
		}
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

// located says whether all, and whether any, of the host's vectors lie in
// memory from Alloc.
func (c *Comm) located() (all, some bool) {
	all = true
	for _, h := range c.headers {
		all = all && h.located()
		some = some || h.located()
	}
	return all, some
}

// oneHost carries out req where all ranks share one host.
func (c *Comm) oneHost(seq uint64, req collective.Request) error {
	v, h := c.vectorOf(seq, req)
	switch req.Kind {
	case collective.AllReduce:
		return c.allReduce(v, h, req)
	case collective.ReduceScatter:
		return c.reduceScatter(v, h, req)
	case collective.AllGather:
		return c.allGather(v, h)
	case collective.Broadcast:
		return c.broadcast(v, h, req.Root)
	}
	return c.meet(h)
}

// job is how req's elements are combined to the end.
func (c *Comm) job(req collective.Request) reduce.Job {
	j := reduce.Job{From: req.Vec.Type, To: req.Vec.Type, Op: req.Op}
	if req.Op == collective.Mean {
		j.Div = c.size
	}
	return j
}

// allReduce: every rank reduces its share of each chunk and writes it to all.
// A small vector is reduced by every rank for itself.
func (c *Comm) allReduce(v vector, h localHeader, req collective.Request) error {
	stage := func(at, n int) {
		if v.out {
			copy(c.arena.stage(c.topo.local, c.round), v.data[at:at+n])
		}
	}
	chunk := min(len(v.data), c.arena.chunk)
	stage(0, chunk)
	if err := c.meet(h); err != nil {
		return err
	}
	if len(v.data) <= small {
		c.look(0, chunk)
		c.job(req).Run(v.data, c.views, &c.scratch)
		c.round++
		return nil
	}
	if all, _ := c.located(); all {
		chunk = len(v.data)
	}
	for at := 0; at < len(v.data); at += chunk {
		n := min(chunk, len(v.data)-at)
		if at > 0 {
			stage(at, n)
			if err := c.barrier(); err != nil {
				return err
			}
		}
		c.look(at, n)
		c.reduceShare(c.job(req), v.size, n)
		if err := c.barrier(); err != nil {
			return err
		}
		if v.out {
			copy(v.data[at:at+n], c.views[c.topo.local])
		}
		c.round++
	}
	return nil
}

// look points views at n bytes of all vectors of the host.
func (c *Comm) look(at, n int) {
	for l := range c.views {
		c.views[l] = c.view(l, at, n)
	}
}

// tile is the number of bytes that are reduced and then copied to the other
// ranks while they are in the first-level cache.
const tile = 16 << 10

// reduceShare reduces this rank's share of the views and copies it to all.
func (c *Comm) reduceShare(j reduce.Job, size, n int) {
	own := c.topo.local
	lo, hi := share(n, len(c.views), own, 64)
	srcs := make([][]byte, len(c.views))
	for ; lo < hi; lo += tile {
		end := min(lo+tile, hi)
		for l, view := range c.views {
			srcs[l] = view[lo:end]
		}
		j.Run(srcs[own], srcs, &c.scratch)
		for l := range srcs {
			if l != own {
				copy(srcs[l], srcs[own])
			}
		}
	}
}

// reduceScatter: every rank reduces its part.
func (c *Comm) reduceScatter(v vector, h localHeader, req collective.Request) error {
	part := v.len / c.size * v.size // bytes of a part
	stage := func(at, n int) {
		if v.out {
			s := c.arena.stage(c.topo.local, c.round)
			for q := range c.size {
				copy(s[q*n:], v.data[q*part+at:q*part+at+n])
			}
		}
	}
	chunk := min(part, c.arena.chunk/c.size/8*8)
	stage(0, chunk)
	if err := c.meet(h); err != nil {
		return err
	}
	all, some := c.located()
	if all {
		chunk = part
	}
	for at := 0; at < part; at += chunk {
		n := min(chunk, part-at)
		if at > 0 {
			stage(at, n)
			if err := c.barrier(); err != nil {
				return err
			}
		}
		for l, o := range c.headers {
			if o.located() {
				c.views[l] = c.view(l, c.rank*part+at, n)
			} else {
				c.views[l] = c.view(l, 0, c.size*n)[c.rank*n : c.rank*n+n]
			}
		}
		c.job(req).Run(v.data[c.rank*part+at:][:n], c.views, &c.scratch)
		c.round++
	}
	if some { // nobody may change its vector while others read it
		return c.barrier()
	}
	return nil
}

// allGather: every rank copies the others' parts.
func (c *Comm) allGather(v vector, h localHeader) error {
	part := v.len / c.size * v.size
	stage := func(at, n int) {
		if v.out {
			copy(c.arena.stage(c.topo.local, c.round), v.data[c.rank*part+at:][:n])
		}
	}
	chunk := min(part, c.arena.chunk)
	stage(0, chunk)
	if err := c.meet(h); err != nil {
		return err
	}
	all, some := c.located()
	if all {
		chunk = part
	}
	for at := 0; at < part; at += chunk {
		n := min(chunk, part-at)
		if at > 0 {
			stage(at, n)
			if err := c.barrier(); err != nil {
				return err
			}
		}
		for l := range c.headers {
			if l != c.rank {
				copy(v.data[l*part+at:], c.view(l, l*part+at, n))
			}
		}
		c.round++
	}
	if some {
		return c.barrier()
	}
	return nil
}

// broadcast: every rank copies the root's vector.
func (c *Comm) broadcast(v vector, h localHeader, root int) error {
	stage := func(at, n int) {
		if v.out && c.rank == root {
			copy(c.arena.stage(c.topo.local, c.round), v.data[at:at+n])
		}
	}
	chunk := min(len(v.data), c.arena.chunk)
	stage(0, chunk)
	if err := c.meet(h); err != nil {
		return err
	}
	whole := c.headers[root].located()
	if whole {
		chunk = len(v.data)
	}
	for at := 0; at < len(v.data); at += chunk {
		n := min(chunk, len(v.data)-at)
		if at > 0 {
			stage(at, n)
			if err := c.barrier(); err != nil {
				return err
			}
		}
		if c.rank != root {
			copy(v.data[at:at+n], c.view(root, at, n))
		}
		c.round++
	}
	if whole {
		return c.barrier()
	}
	return nil
}

// alloc carries out Alloc.
func (c *Comm) alloc(p *pending) error {
	n := p.alloc.n
	seg, err := c.allocSegment(p.seq, n)
	if err != nil {
		return err
	}
	seg.adviseHuge()
	c.mu.Lock()
	c.segments = append(c.segments, seg)
	c.mu.Unlock()
	p.alloc.mem = seg.of(c.topo.local)
	return nil
}

func (c *Comm) allocSegment(seq uint64, n int) (*segment, error) {
	h := header{kind: collective.Allocation, len: uint64(n), seq: seq}
	if c.size == 1 {
		return privateSegment(n)
	}
	if c.star == nil {
		if err := c.everyHost(localHeader{header: h, seg: -1}); err != nil {
			return nil, err
		}
		return privateSegment(n)
	}
	locals := len(c.topo.locals())
	var seg *segment
	var err error
	if c.topo.leads() { // sent before the barrier, so it is there after it
		if seg, err = c.star.share("ebtrain alloc", locals, n); err != nil {
			return nil, err
		}
	}
	if err := c.everyHost(localHeader{header: h, seg: -1}); err != nil || seg != nil {
		if err != nil && seg != nil {
			err = errors.Join(err, seg.unmap())
		}
		return seg, err
	}
	select {
	case f := <-c.star.files:
		defer f.Close()
		return mapSegment(f, locals, n)
	case <-c.failing:
		return nil, c.failure()
	}
}

// everyHost compares h on all ranks of all hosts.
func (c *Comm) everyHost(h localHeader) error {
	if err := c.meet(h); err != nil || c.topo.oneHost() {
		return err
	}
	return c.consent(h.header)
}
