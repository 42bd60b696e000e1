package cuda

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Stream is a queue of work of a device: its operations run in order, and beside
// those of other streams. It does not wait for the default stream. Operations of
// several goroutines are queued in the order in which their calls are made.
type Stream struct {
	d      *Device
	name   string
	handle uintptr
	theirs bool // Close leaves it alone
}

// NewStream makes a stream. The name is for errors. A lower priority is more
// urgent, 0 is usual, and what the device does not have is moved to what it has.
func (d *Device) NewStream(name string, priority int) (*Stream, error) {
	h, code := d.drv.stream(d.ctx, priority)
	if err := d.check("cuStreamCreateWithPriority", code); err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	return &Stream{d: d, name: name, handle: h}, nil
}

// StreamOf is a stream that something else has made, in the device's primary context,
// and closes: Close of the result does nothing.
func (d *Device) StreamOf(name string, handle uintptr) *Stream {
	return &Stream{d: d, name: name, handle: handle, theirs: true}
}

// Handle is the CUstream, for other libraries.
func (s *Stream) Handle() uintptr { return s.handle }

// Device is where the stream runs.
func (s *Stream) Device() *Device { return s.d }

// Name is what NewStream was told.
func (s *Stream) Name() string { return s.name }

// Close frees the stream. What is queued still runs.
func (s *Stream) Close() error {
	if s.handle == 0 || s.theirs {
		return nil
	}
	h := s.handle
	s.handle = 0
	if err := s.d.closing("cuStreamDestroy_v2", s.d.drv.streamClose(s.d.ctx, h)); err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	return nil
}

func (s *Stream) check(call string, code int) error {
	if code == success {
		return nil
	}
	return fmt.Errorf("stream %s: %w", s.name, s.d.check(call, code))
}

// CopyIn copies n bytes of pinned memory, from off on, to the device.
func (s *Stream) CopyIn(dst Ptr, src *Pinned, off, n int) error {
	from, err := src.at(off, n)
	if err != nil || n == 0 {
		return err
	}
	return s.check("cuMemcpyHtoDAsync_v2", s.d.drv.copyIn(s.d.ctx, s.handle, dst, from, n))
}

// CopyOut copies n bytes of the device to pinned memory, from off on.
func (s *Stream) CopyOut(dst *Pinned, off int, src Ptr, n int) error {
	to, err := dst.at(off, n)
	if err != nil || n == 0 {
		return err
	}
	return s.check("cuMemcpyDtoHAsync_v2", s.d.drv.copyOut(s.d.ctx, s.handle, to, src, n))
}

// CopyDevice copies n bytes inside the device; the two may not overlap.
func (s *Stream) CopyDevice(dst, src Ptr, n int64) error {
	if n == 0 {
		return nil
	}
	return s.check("cuMemcpyDtoDAsync_v2", s.d.drv.copyDevice(s.d.ctx, s.handle, dst, src, n))
}

// Memset sets n bytes.
func (s *Stream) Memset(dst Ptr, value byte, n int64) error {
	if n == 0 {
		return nil
	}
	return s.check("cuMemsetD8Async", s.d.drv.set8(s.d.ctx, s.handle, dst, value, n))
}

// Memset32 sets n words of four bytes; dst is a multiple of 4. Pinned memory may
// be set, too, at its Ptr: so a graph tells the host how far it is.
func (s *Stream) Memset32(dst Ptr, value uint32, n int64) error {
	if n == 0 {
		return nil
	}
	return s.check("cuMemsetD32Async", s.d.drv.set32(s.d.ctx, s.handle, dst, value, n))
}

// HostFunc runs a function of the host's in its turn. It runs on a thread of the
// driver's, which waits for it with all that is queued: it must be short, and
// must not call CUDA. It is not for captures, whose graphs would run it more
// than once.
func (s *Stream) HostFunc(f func()) error {
	on, err := s.Capturing()
	if err != nil {
		return err
	}
	if on {
		return fmt.Errorf("stream %s: a function of the host's cannot be captured", s.name)
	}
	return s.check("cuLaunchHostFunc", s.d.drv.hostFunc(s.d.ctx, s.handle, f))
}

// Query says whether all that was queued is done.
func (s *Stream) Query() (bool, error) {
	return done(s.d.drv.streamQuery(s.d.ctx, s.handle), func(code int) error { return s.check("cuStreamQuery", code) })
}

// done reads the answer to a query.
func done(code int, check func(code int) error) (bool, error) {
	switch code {
	case success:
		return true, nil
	case codeNotReady:
		return false, nil
	}
	return false, check(code)
}

// Sync waits until all that was queued is done, or until the context ends, with
// its error; the work goes on then. A context that can end costs a poll every
// 50 µs, and more rarely the longer it lasts; one that cannot is the driver's
// own wait.
func (s *Stream) Sync(ctx context.Context) error {
	if ctx.Done() == nil {
		return s.check("cuStreamSynchronize", s.d.drv.streamSync(s.d.ctx, s.handle))
	}
	return poll(ctx, s.Query)
}

// poll asks until it is done or the context ends.
func poll(ctx context.Context, query func() (bool, error)) error {
	const least, most = 50 * time.Microsecond, time.Millisecond
	for began, pause := time.Now(), time.Duration(0); ; {
		if ok, err := query(); ok || err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		// Short work ends within some turns without sleeping.
		if elapsed := time.Since(began); elapsed > 20*time.Microsecond {
			pause = min(max(least, elapsed/64), most)
		}
		Nap(pause)
	}
}

// Nap sleeps, to ask a device again. The runtime makes a millisecond of a shorter Sleep
// where nothing else runs, as it waits in epoll then; the system's own takes what is asked,
// some 50 µs more, and a thread. For no time it does not sleep.
func Nap(d time.Duration) {
	if d <= 0 || d >= time.Millisecond {
		time.Sleep(d)
		return
	}
	t := unix.NsecToTimespec(d.Nanoseconds())
	unix.Nanosleep(&t, nil) //nolint:errcheck // interrupted, it is asked again sooner
}
