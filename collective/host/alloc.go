package host

import (
	"context"
	"errors"

	"ebtrain/collective"
)

// alloc carries out Alloc.
func (c *Comm) alloc(ctx context.Context, it item) error {
	seg, err := c.allocSegment(ctx, it)
	if err != nil {
		return err
	}
	seg.adviseHuge()
	c.mu.Lock()
	c.segments = append(c.segments, seg)
	c.mu.Unlock()
	it.alloc.mem = seg.of(c.topo.local)
	return nil
}

func (c *Comm) allocSegment(ctx context.Context, it item) (*segment, error) {
	n := it.alloc.n
	if c.size == 1 {
		return privateSegment(n)
	}
	if c.star == nil {
		if err := c.everyHost(ctx, it); err != nil {
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
	if err := c.everyHost(ctx, it); err != nil || seg != nil {
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

// everyHost compares an Alloc on all ranks of all hosts.
func (c *Comm) everyHost(ctx context.Context, it item) error {
	h := header{kind: collective.Allocation, len: uint64(it.alloc.n), seq: it.seq}
	c.publish(localHeader{header: h, seg: -1}, "")
	if err := c.meet(ctx); err != nil || c.topo.oneHost() {
		return err
	}
	return c.consent(ctx, named{header: h})
}
