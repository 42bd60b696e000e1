package cuda

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/dustin/go-humanize"
)

// Info describes a GPU.
type Info struct {
	Name         string
	Ordinal      int // among those that CUDA_VISIBLE_DEVICES leaves
	Major, Minor int // compute capability
	SMs          int // streaming multiprocessors
	Memory       int64
	L2           int64  // bytes of the cache before it
	UUID         string // GPU-…, as nvidia-smi -L has it, in lower case
	Whole        string // the UUID of the GPU of which this is a part (MIG), else its own
	BusID        string // domain:bus:device.function on PCI
}

func (i Info) String() string {
	return fmt.Sprintf("%s (GPU %d, sm_%d%d, %d SMs, %s)", i.Name, i.Ordinal, i.Major, i.Minor, i.SMs, humanize.IBytes(uint64(i.Memory)))
}

// Attributes of a device.
const (
	attributeSMs   = 16
	attributeL2    = 38
	attributeMajor = 75
	attributeMinor = 76
)

// Devices lists the GPUs that the process may use, by ordinal. It makes no
// context.
func Devices() ([]Info, error) {
	d, err := start()
	if err != nil {
		return nil, err
	}
	n, code := d.deviceCount()
	if err := check(d, "cuDeviceGetCount", code); err != nil {
		return nil, noDevice(err)
	}
	if n == 0 {
		return nil, fmt.Errorf("%w%s", ErrNoDevice, visible())
	}
	list := make([]Info, n)
	for i := range list {
		_, info, err := describe(d, i)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		list[i] = info
	}
	return list, nil
}

// describe asks about a device, and returns its CUdevice, too.
func describe(d driver, ordinal int) (int, Info, error) {
	i := Info{Ordinal: ordinal}
	dev, code := d.device(ordinal)
	if err := check(d, "cuDeviceGet", code); err != nil {
		return 0, i, err
	}
	var uuid, whole [16]byte
	var l2 int
	ask := func(call string, get func() int) func() error {
		return func() error { return check(d, call, get()) }
	}
	for _, f := range []func() error{
		ask("cuDeviceGetName", func() (code int) { i.Name, code = d.deviceName(dev); return code }),
		ask("cuDeviceGetPCIBusId", func() (code int) { i.BusID, code = d.deviceBus(dev); return code }),
		ask("cuDeviceGetUuid_v2", func() (code int) { uuid, code = d.deviceUUID(dev); return code }),
		ask("cuDeviceGetUuid", func() (code int) { whole, code = d.deviceWholeUUID(dev); return code }),
		ask("cuDeviceTotalMem_v2", func() (code int) { i.Memory, code = d.deviceMemory(dev); return code }),
		ask("cuDeviceGetAttribute", func() (code int) { i.SMs, code = d.deviceAttribute(dev, attributeSMs); return code }),
		ask("cuDeviceGetAttribute", func() (code int) { l2, code = d.deviceAttribute(dev, attributeL2); return code }),
		ask("cuDeviceGetAttribute", func() (code int) { i.Major, code = d.deviceAttribute(dev, attributeMajor); return code }),
		ask("cuDeviceGetAttribute", func() (code int) { i.Minor, code = d.deviceAttribute(dev, attributeMinor); return code }),
	} {
		if err := f(); err != nil {
			return 0, i, err
		}
	}
	i.L2 = int64(l2)
	i.UUID, i.Whole = uuidText(uuid), uuidText(whole)
	return dev, i, nil
}

func uuidText(id [16]byte) string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Device is a GPU with its primary context. Its methods may be called by any
// goroutine until Close, which comes after all of them.
type Device struct {
	drv    driver
	dev    int // CUdevice
	ctx    uintptr
	info   Info
	thread *thread
	cache  *cache
	log    atomic.Pointer[slog.Logger]
	closed atomic.Bool
	users  atomic.Int32 // who has opened it, until it is closed, and those who keep it
	lost   atomic.Bool  // its context is, and a call has said so
}

// OpenDevice retains the primary context of a GPU. A GPU may be opened several
// times; its context ends when all are closed.
func OpenDevice(ordinal int) (*Device, error) {
	list, err := Devices()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(list) {
		return nil, fmt.Errorf("%w number %d: there are %d, counted from 0%s", ErrNoDevice, ordinal, len(list), leaves())
	}
	drv, err := start()
	if err != nil {
		return nil, err
	}
	dev, info, err := describe(drv, ordinal)
	if err != nil {
		return nil, fmt.Errorf("GPU %d: %w", ordinal, err)
	}
	ctx, code := drv.retain(dev)
	if err := check(drv, "cuDevicePrimaryCtxRetain", code); err != nil {
		if code == codeOutOfMemory {
			err = fmt.Errorf("%w; other processes have its memory: nvidia-smi lists them", err)
		}
		return nil, fmt.Errorf("%s: %w", info, err)
	}
	d := &Device{drv: drv, dev: dev, ctx: ctx, info: info, cache: &cache{folder: cacheFolder}}
	d.users.Store(1)
	d.thread = startThread()
	d.SetLogger(slog.New(slog.DiscardHandler))
	return d, nil
}

// SetLogger says where notices go, as that the cache of kernels cannot be
// written. Without it they are not given.
func (d *Device) SetLogger(l *slog.Logger) { d.log.Store(l) }

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// Close releases the primary context. What was made on the device and is still
// there goes with it. While somebody keeps the device only Do ends.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.thread.stop()
	return d.leave()
}

// Keep has the context outlive Close until done is called, once: for what another library
// is still ending in it.
func (d *Device) Keep() (done func() error) {
	d.users.Add(1)
	return d.leave
}

// Kept says of a device that is not closed whether somebody keeps it.
func (d *Device) Kept() bool { return d.users.Load() > 1 }

func (d *Device) leave() error {
	if d.users.Add(-1) > 0 {
		return nil
	}
	return d.closing("cuDevicePrimaryCtxRelease_v2", d.drv.release(d.dev))
}

// Do runs a function on the device's own OS thread, with the context current,
// after those that were asked for before. What must happen on one thread, as a
// capture does, belongs here. The function must not call Do.
func (d *Device) Do(f func() error) error {
	return d.thread.do(func() error { return d.current(f) })
}

// Attach runs a function with the context current on the thread of the calling
// goroutine, which is bound to it meanwhile. It is for calls of other libraries
// that expect a current context.
func (d *Device) Attach(f func() error) error {
	defer bindThread()()
	return d.current(f)
}

// current runs f with the context current; the goroutine is bound to its thread.
func (d *Device) current(f func() error) error {
	if d.users.Load() == 0 {
		return ErrClosed
	}
	if err := d.check("cuCtxSetCurrent", d.drv.enter(d.ctx)); err != nil {
		return err
	}
	return f()
}

// Sync waits until all that was queued on the device is done.
func (d *Device) Sync() error { return d.check("cuCtxSynchronize", d.drv.sync(d.ctx)) }
