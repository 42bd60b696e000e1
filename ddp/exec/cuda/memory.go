package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
)

// bounceBytes is the pinned memory through which variables pass.
const bounceBytes = 4 << 20

// holding is device memory and what it is for.
type holding struct {
	bytes int64
	what  string
}

// alloc takes device memory for what, in words. Of nothing it is nothing.
func (b *Backend) alloc(bytes int64, what string) (driver.Ptr, error) {
	if bytes == 0 {
		return 0, nil
	}
	p, err := b.dev.Alloc(bytes)
	if full, ok := errors.AsType[*driver.OutOfMemory](err); ok {
		return 0, b.full(what, full)
	}
	if err != nil {
		return 0, fmt.Errorf("%d bytes for %s: %w", bytes, what, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory[p] = holding{bytes, what}
	return p, nil
}

// release gives it back.
func (b *Backend) free(p driver.Ptr) error {
	if p == 0 {
		return nil
	}
	b.mu.Lock()
	delete(b.memory, p)
	b.mu.Unlock()
	return b.dev.Free(p)
}

// full says what is wrong, and where the memory is.
func (b *Backend) full(what string, o *driver.OutOfMemory) error {
	return &exec.FullError{Of: b.who(), What: what, Asked: o.Asked, Free: o.Free, Total: o.Total, Largest: b.largest(3)}
}

// largest are the n largest uses of the device's memory; those of equal words count as
// one.
func (b *Backend) largest(n int) []exec.MemoryUse {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := map[string]int64{}
	for _, h := range b.memory {
		sum[h.what] += h.bytes
	}
	var all []exec.MemoryUse
	for what, bytes := range sum {
		all = append(all, exec.MemoryUse{What: what, Bytes: bytes})
	}
	slices.SortFunc(all, func(x, y exec.MemoryUse) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.What, y.What))
	})
	return all[:min(n, len(all))]
}

// upload copies host memory to the device, and is done when it returns.
func (b *Backend) upload(to driver.Ptr, from []byte) error {
	return b.pieces(len(from), func(at, n int) error {
		copy(b.bounce.Bytes(), from[at:at+n])
		if err := b.copy.CopyIn(to+driver.Ptr(at), b.bounce, 0, n); err != nil {
			return err
		}
		return b.copy.Sync(context.Background())
	})
}

// download copies device memory to the host.
func (b *Backend) download(to []byte, from driver.Ptr) error {
	return b.pieces(len(to), func(at, n int) error {
		if err := b.copy.CopyOut(b.bounce, 0, from+driver.Ptr(at), n); err != nil {
			return err
		}
		if err := b.copy.Sync(context.Background()); err != nil {
			return err
		}
		copy(to[at:], b.bounce.Bytes()[:n])
		return nil
	})
}

// pieces calls f for n bytes, as many at a time as the pinned memory takes.
func (b *Backend) pieces(n int, f func(at, n int) error) error {
	b.transfer.Lock()
	defer b.transfer.Unlock()
	for at := 0; at < n; at += bounceBytes {
		if err := f(at, min(bounceBytes, n-at)); err != nil {
			return err
		}
	}
	return nil
}
