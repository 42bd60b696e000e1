package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dustin/go-humanize"
)

// MemInfo says how many bytes of the device are free, for all processes, and how
// many it has.
func (d *Device) MemInfo() (free, total int64, err error) {
	free, total, code := d.drv.memInfo(d.ctx)
	return free, total, d.check("cuMemGetInfo_v2", code)
}

// Alloc allocates memory on the device, aligned to 256 bytes, its contents
// undefined. No bytes are the address 0. With too little memory the error is an
// *OutOfMemory.
func (d *Device) Alloc(bytes int64) (Ptr, error) {
	if bytes < 0 {
		return 0, fmt.Errorf("cuda: %d bytes asked", bytes)
	}
	if bytes == 0 {
		return 0, nil
	}
	p, code := d.drv.alloc(d.ctx, bytes)
	if code != success {
		err := d.check("cuMemAlloc_v2", code)
		if full, ok := errors.AsType[*OutOfMemory](err); ok {
			full.Asked = bytes
		}
		return 0, err
	}
	return p, nil
}

// callPin takes memory of the host: that there is none is not the device's want.
const callPin = "cuMemHostAlloc"

// outOfMemory is what becomes of a call that found too little of the device's memory, which
// any may: a graph, a module, a launch need some, too.
func (d *Device) outOfMemory(err error) error {
	o := &OutOfMemory{Err: err}
	if free, total, code := d.drv.memInfo(d.ctx); code == success {
		o.Free, o.Total = free, total
	}
	return o
}

// Free frees what Alloc gave. It waits for the device; nothing queued may use
// the memory any more.
func (d *Device) Free(p Ptr) error {
	if p == 0 {
		return nil
	}
	return d.closing("cuMemFree_v2", d.drv.free(d.ctx, p))
}

// Pinned is memory of the host that the device copies from and to while others
// work, and that kernels may read and write at Ptr.
type Pinned struct {
	d     *Device
	host  unsafe.Pointer
	ptr   Ptr
	bytes []byte
}

// AllocPinned allocates pinned memory, its contents undefined.
func (d *Device) AllocPinned(bytes int) (*Pinned, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("cuda: %d bytes of pinned memory asked", bytes)
	}
	host, ptr, code := d.drv.pin(d.ctx, max(bytes, 1))
	if code != success {
		return nil, fmt.Errorf("pinning %s of the host's memory: %w", humanize.IBytes(uint64(bytes)), d.check(callPin, code))
	}
	return &Pinned{d: d, host: host, ptr: ptr, bytes: unsafe.Slice((*byte)(host), bytes)}, nil
}

// Bytes are the memory as the host sees it. It is no memory of Go: it is gone
// after Free.
func (p *Pinned) Bytes() []byte { return p.bytes }

// Ptr is the memory's address for kernels.
func (p *Pinned) Ptr() Ptr { return p.ptr }

// Free gives the memory back.
func (p *Pinned) Free() error {
	if p.host == nil {
		return nil
	}
	host := p.host
	p.host, p.ptr, p.bytes = nil, 0, nil
	return p.d.closing("cuMemFreeHost", p.d.drv.unpin(p.d.ctx, host))
}

// at is the address of n bytes from off on.
func (p *Pinned) at(off, n int) (unsafe.Pointer, error) {
	if off < 0 || n < 0 || off > len(p.bytes) || n > len(p.bytes)-off {
		return nil, fmt.Errorf("cuda: bytes %d to %d of pinned memory of %d", off, off+n, len(p.bytes))
	}
	return unsafe.Add(p.host, off), nil
}
