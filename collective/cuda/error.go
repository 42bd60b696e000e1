package cuda

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// What can be wrong with a machine, or with a graph for it, for errors.Is. The errors
// that wrap them say more.
var (
	ErrNoCgo        = errors.New("this program was built without cgo, which CUDA needs")
	ErrNoDriver     = errors.New("this machine has no NVIDIA driver")
	ErrNoDevice     = errors.New("the NVIDIA driver offers no GPU")
	ErrDriverTooOld = errors.New("the NVIDIA driver is too old")
	ErrClosed       = errors.New("the device is closed")
	ErrNoBody       = errors.New("the graph cannot be the body of a node")
)

// Error is a call that failed: of the driver, or of another library that
// reports by a number.
type Error struct {
	Call string // the function, as its header calls it
	Code int    // what it returned
	Name string // the code's name, as CUDA_ERROR_ILLEGAL_ADDRESS
	Text string // what the library says about it
}

func (e *Error) Error() string {
	s := fmt.Sprintf("cuda: %s: %s (%s, %d)", e.Call, e.Text, e.Name, e.Code)
	if e.Sticky() {
		s += "; the GPU's context is lost, every later call fails too, and the process must end (the kernel's log may name the fault: dmesg | grep Xid)"
	} else if hint := hints[e.Code]; hint != "" && e.ofDriver() {
		s += "; " + hint
	}
	return s
}

// Sticky says whether the context is lost, so that the process must end.
func (e *Error) Sticky() bool { return e.ofDriver() && sticky[e.Code] }

// ofDriver tells the driver's codes from other libraries' of the same number.
func (e *Error) ofDriver() bool { return strings.HasPrefix(e.Name, "CUDA_ERROR_") }

// Codes of the driver that this package tells apart.
const (
	success           = 0
	codeInvalidValue  = 1
	codeOutOfMemory   = 2
	codeStub          = 34
	codeNoDevice      = 100
	codeInvalidDevice = 101
	codeNotReady      = 600
)

// sticky are the codes after which the context serves no more, by what cuda.h says
// of them.
var sticky = map[int]bool{
	214: true, // ECC_UNCORRECTABLE
	220: true, // NVLINK_UNCORRECTABLE
	226: true, // CONTAINED
	700: true, // ILLEGAL_ADDRESS
	702: true, // LAUNCH_TIMEOUT
	709: true, // CONTEXT_IS_DESTROYED
	710: true, // ASSERT
	714: true, // HARDWARE_STACK_ERROR
	715: true, // ILLEGAL_INSTRUCTION
	716: true, // MISALIGNED_ADDRESS
	717: true, // INVALID_ADDRESS_SPACE
	718: true, // INVALID_PC
	719: true, // LAUNCH_FAILED
	721: true, // TENSOR_MEMORY_LEAK
	810: true, // MPS_CLIENT_TERMINATED
	911: true, // EXTERNAL_DEVICE
}

// hints are what to do about codes that a user can do something about.
var hints = map[int]string{
	3:   "the driver is shutting down: the process ends while CUDA is still in use",
	34:  "this libcuda is only for building: take CUDA's stubs folder out of LD_LIBRARY_PATH",
	46:  "another process may have the GPU for itself (nvidia-smi names it, and the compute mode)",
	200: "the kernel's image is damaged: remove the cache of kernels",
	209: "the kernel was compiled for another GPU: remove the cache of kernels",
	218: "the kernel's image is damaged or for another GPU: remove the cache of kernels",
	222: "the driver is older than the compiler that made the kernel",
	802: "the GPUs are not ready yet: on machines with NVSwitch the fabric manager must run",
	803: "libcuda and the kernel's module have different versions: reboot, or reinstall the driver",
	804: "the forward-compatible libcuda does not serve this GPU: take CUDA's compat folder out of LD_LIBRARY_PATH",
}

// OutOfMemory is what an allocation returns when the device has too little.
type OutOfMemory struct {
	Asked, Free, Total int64 // bytes; Asked is 0 where only the driver knows
	Err                error // the call that failed
}

func (e *OutOfMemory) Error() string {
	asked := ""
	if e.Asked > 0 {
		asked = binary(e.Asked) + " asked, "
	}
	s := fmt.Sprintf("cuda: out of memory on the GPU: %s%s of %s free", asked, binary(e.Free), binary(e.Total))
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s
}

// binary is so many bytes for people, with digits enough to compare what is asked with what
// is free, which may be hardly less; below a KiB they are whole.
func binary(n int64) string {
	if n < 1<<10 {
		return humanize.IBytes(uint64(n))
	}
	return humanize.IBytesN(uint64(n), 4)
}

func (e *OutOfMemory) Unwrap() error { return e.Err }
