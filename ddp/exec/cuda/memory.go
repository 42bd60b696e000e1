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
	if _, full := errors.AsType[*driver.OutOfMemory](err); full {
		return 0, b.full(what, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%d bytes for %s: %w", bytes, what, err)
	}
	b.hold(p, bytes, what)
	return p, nil
}

// hold notes memory and what it is for.
func (b *Backend) hold(p driver.Ptr, bytes int64, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory[p] = holding{bytes, what}
}

// free gives it back.
func (b *Backend) free(p driver.Ptr) error {
	if p == 0 {
		return nil
	}
	b.mu.Lock()
	delete(b.memory, p)
	b.mu.Unlock()
	return b.dev.Free(p)
}

// full makes of an error that says the device has too little memory one that says what for,
// where the memory is, and what to do. Others are left as they are. Of "" it is for the call
// that failed.
func (b *Backend) full(what string, err error) error {
	o := b.shortage(err)
	if _, done := errors.AsType[*exec.FullError](err); o == nil || done {
		return err
	}
	if what == "" {
		what = "a call of a library's"
		if call, ok := errors.AsType[*driver.Error](o.Err); ok {
			what = call.Call
		}
	}
	largest, held := b.largest(3)
	return &exec.FullError{Of: b.who(), What: what, Asked: o.Asked, Free: o.Free, Total: o.Total, Largest: largest, Others: max(0, o.Total-o.Free-held), Help: b.c.Smaller, Err: o}
}

// shortage is what an error says of the device's memory; nil is nothing. Libraries allocate,
// too, and have numbers of their own for it.
func (b *Backend) shortage(err error) *driver.OutOfMemory {
	if o, ok := errors.AsType[*driver.OutOfMemory](err); ok {
		return o
	}
	var library interface{ DeviceFull() bool }
	if !errors.As(err, &library) || !library.DeviceFull() {
		return nil
	}
	o := &driver.OutOfMemory{Err: err}
	if free, total, err := b.dev.MemInfo(); err == nil { // else nothing is known of it
		o.Free, o.Total = free, total
	}
	return o
}

// largest are the n largest uses of the device's memory, and how much all take; those of
// equal words count as one.
func (b *Backend) largest(n int) (_ []exec.MemoryUse, held int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := map[string]int64{}
	for _, h := range b.memory {
		sum[h.what] += h.bytes
		held += h.bytes
	}
	var all []exec.MemoryUse
	for what, bytes := range sum {
		all = append(all, exec.MemoryUse{What: what, Bytes: bytes})
	}
	slices.SortFunc(all, func(x, y exec.MemoryUse) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.What, y.What))
	})
	return all[:min(n, len(all))], held
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
