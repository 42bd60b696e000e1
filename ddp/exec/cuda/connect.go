package cuda

import (
	"context"
	"fmt"
	"unsafe"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/graph"
)

// deviceVec is n elements at an address of the device.
func deviceVec(at driver.Ptr, d graph.DType, n int) collective.Vec {
	return collective.Vec{Type: d, Len: n, Ptr: address(at)}
}

// address is an address of the device as collective.Vec holds it: a number that no
// Go code follows.
func address(p driver.Ptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// enqueuer is a Comm whose collectives are work of a stream.
type enqueuer interface {
	collective.Comm
	Enqueue(s *driver.Stream, req collective.Request) error
}

// Connect is the Comm that programs reduce over.
func (b *Backend) Connect(ctx context.Context, host collective.Comm) (collective.Comm, error) {
	if host == nil {
		return nil, nil
	}
	s := &staged{Comm: host, b: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reduced, b.host = append(b.reduced, s), host
	return s, nil
}

// capturable says whether the program's collectives may be captured.
func (p *program) capturable() bool {
	if !p.collective() {
		return true
	}
	_, ok := p.comm.(enqueuer)
	return ok
}

// lost is why the group has ended, nil if it has not.
func (p *program) lost() error { return nil }

// reduce does a collective on a stream.
func (p *program) reduce(s *driver.Stream, req collective.Request) error {
	if c, ok := p.comm.(enqueuer); ok {
		return c.Enqueue(s, req)
	}
	c, ok := p.comm.(*staged)
	if !ok {
		return fmt.Errorf("a collective over %T: want what the backend's Connect made", p.comm)
	}
	return c.reduce(p.ctx, s, req)
}

// staged reduces device memory through pinned host memory, over another Comm. Who
// starts a collective on a stream waits for it.
type staged struct {
	collective.Comm
	b     *Backend
	owned []driver.Ptr
	mem   *driver.Pinned
}

// Alloc gives memory of the device.
func (c *staged) Alloc(n int) (collective.Vec, error) {
	at, err := c.b.alloc(int64(n), "buckets")
	if err != nil {
		return collective.Vec{}, err
	}
	c.owned = append(c.owned, at)
	return deviceVec(at, graph.U8, n), nil
}

// reduce does req, whose vector lies on the device, when s has come to it.
func (c *staged) reduce(ctx context.Context, s *driver.Stream, req collective.Request) (err error) {
	n := req.Vec.Len * req.Vec.Type.Size()
	if n == 0 {
		return nil
	}
	if c.mem == nil || len(c.mem.Bytes()) < n {
		if c.mem != nil {
			if err := c.mem.Free(); err != nil {
				return err
			}
		}
		if c.mem, err = c.b.dev.AllocPinned(n); err != nil {
			c.mem = nil
			return err
		}
	}
	at := driver.Ptr(uintptr(req.Vec.Ptr))
	if err := s.CopyOut(c.mem, 0, at, n); err != nil {
		return err
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	req.Vec.Ptr = unsafe.Pointer(unsafe.SliceData(c.mem.Bytes()))
	if err := collective.Do(ctx, c.Comm, req); err != nil {
		return err
	}
	if err := s.CopyIn(at, c.mem, 0, n); err != nil {
		return err
	}
	return s.Sync(ctx)
}

// Close releases the memory; the other Comm is its owner's.
func (c *staged) Close() error {
	var first error
	for _, at := range c.owned {
		if err := c.b.free(at); err != nil && first == nil {
			first = err
		}
	}
	c.owned = nil
	if c.mem != nil {
		if err := c.mem.Free(); err != nil && first == nil {
			first = err
		}
		c.mem = nil
	}
	return first
}
