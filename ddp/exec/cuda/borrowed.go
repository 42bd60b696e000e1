package cuda

import (
	"context"
	"unsafe"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/graph"
)

// borrowed reduces memory of the device over any Comm in host memory: for groups that
// are not package host's, which have no second group for the device. Who enqueues a
// collective waits for it, and nobody else may use the Comm meanwhile.
type borrowed struct {
	collective.Comm
	b     *Backend
	owned []driver.Ptr
	mem   *driver.Pinned
}

// Alloc gives memory of the device.
func (c *borrowed) Alloc(n int) (collective.Vec, error) {
	at, err := c.b.alloc(int64(n), "buckets")
	if err != nil {
		return collective.Vec{}, err
	}
	c.owned = append(c.owned, at)
	return deviceVec(at, graph.U8, n), nil
}

// Agree finds nothing: the Comm compares when it reduces.
func (c *borrowed) Agree(context.Context, []collective.Request) error { return nil }

// Capturable is false.
func (c *borrowed) Capturable() bool { return false }

// Enqueue waits for what is queued on s, and carries out req.
func (c *borrowed) Enqueue(s *driver.Stream, req collective.Request) error {
	n := req.Vec.Len * req.Vec.Type.Size()
	if n == 0 {
		return nil
	}
	if err := c.grow(n); err != nil {
		return err
	}
	at := driver.AddressOf(req.Vec)
	if err := s.CopyOut(c.mem, 0, at, n); err != nil {
		return err
	}
	if err := s.Sync(context.Background()); err != nil {
		return err
	}
	req.Vec.Ptr = unsafe.Pointer(unsafe.SliceData(c.mem.Bytes()))
	if err := collective.Do(context.Background(), c.Comm, req); err != nil {
		return err
	}
	if err := s.CopyIn(at, c.mem, 0, n); err != nil {
		return err
	}
	return s.Sync(context.Background())
}

// Await waits for an event; collectives are over when Enqueue returns.
func (c *borrowed) Await(ctx context.Context, e *driver.Event) error { return e.Sync(ctx) }

// grow makes the staging area hold n bytes.
func (c *borrowed) grow(n int) (err error) {
	if c.mem != nil && len(c.mem.Bytes()) >= n {
		return nil
	}
	if c.mem != nil {
		if err := c.mem.Free(); err != nil {
			return err
		}
		c.mem = nil
	}
	c.mem, err = c.b.dev.AllocPinned(n)
	return err
}

// Close releases the memory; the other Comm is its owner's.
func (c *borrowed) Close() error {
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
