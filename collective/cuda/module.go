package cuda

import (
	"errors"
	"fmt"
)

// MaxArgs is how many bytes a kernel's arguments may have.
const MaxArgs = 4096

// Module is code that is loaded on a device.
type Module struct {
	d      *Device
	handle uintptr
}

// Function is a kernel of a module, until the module is closed.
type Function struct {
	handle uintptr
	name   string
	args   int64 // bytes of its parameter; -1: unknown
}

// Name is the kernel's name in its module.
func (f Function) Name() string { return f.name }

// Load loads an image that Compile made.
func (d *Device) Load(image []byte) (*Module, error) {
	if len(image) == 0 {
		return nil, errors.New("cuda: an empty image is no module")
	}
	h, code := d.drv.load(d.ctx, image)
	if err := d.check("cuModuleLoadData", code); err != nil {
		return nil, fmt.Errorf("a module of %d bytes: %w", len(image), err)
	}
	return &Module{d: d, handle: h}, nil
}

// Function finds a kernel and loads it now. The driver would load it at its
// first launch, and wait for the device: for ever, beside a kernel of NCCL's that
// waits for this one.
func (m *Module) Function(name string) (Function, error) {
	h, code := m.d.drv.function(m.d.ctx, m.handle, name)
	if err := m.d.check("cuModuleGetFunction", code); err != nil {
		return Function{}, fmt.Errorf("kernel %s: %w", name, err)
	}
	args, code := m.d.drv.force(m.d.ctx, h)
	if err := m.d.check("cuFuncLoad", code); err != nil {
		return Function{}, fmt.Errorf("kernel %s: %w", name, err)
	}
	return Function{handle: h, name: name, args: args}, nil
}

// Close unloads the module.
func (m *Module) Close() error {
	if m.handle == 0 {
		return nil
	}
	h := m.handle
	m.handle = 0
	return m.d.closing("cuModuleUnload", m.d.drv.unload(m.d.ctx, h))
}

// Launch queues a kernel of grid blocks of block threads, with shared bytes of
// dynamic shared memory. args is the kernel's one parameter, a struct by value,
// and is copied; a kernel without parameters has none.
func (s *Stream) Launch(f Function, grid, block, shared int, args []byte) error {
	if err := f.fits(grid, block, shared, len(args)); err != nil {
		return err
	}
	code := s.d.drv.launch(s.d.ctx, s.handle, f.handle, uint32(grid), uint32(block), uint32(shared), args)
	if code != success {
		return fmt.Errorf("kernel %s: %w", f.name, s.check("cuLaunchKernel", code))
	}
	return nil
}

// fits checks a launch, as far as it can be without the device.
func (f Function) fits(grid, block, shared, args int) error {
	switch {
	case grid < 1 || grid > 1<<31-1 || block < 1 || block > 1024 || shared < 0:
		return fmt.Errorf("cuda: kernel %s: %d blocks of %d threads with %d bytes of shared memory cannot be launched", f.name, grid, block, shared)
	case args > MaxArgs:
		return fmt.Errorf("cuda: kernel %s: %d bytes of arguments, at most %d", f.name, args, MaxArgs)
	case f.args >= 0 && f.args != int64(args):
		return fmt.Errorf("cuda: kernel %s: %d bytes of arguments, and it takes %d", f.name, args, f.args)
	}
	return nil
}
