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
	} else if hint := meanings[e.Code].hint; hint != "" && e.ofDriver() {
		s += "; " + hint
	}
	return s
}

// Sticky says whether the context is lost, so that the process must end.
func (e *Error) Sticky() bool { return e.ofDriver() && meanings[e.Code].lost }

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

// meaning is what is made of one of the driver's codes.
type meaning struct {
	name  string // in cuda.h, behind CUDA_ERROR_
	lost  bool   // the context serves no more, by what cuda.h says of it
	hint  string // what a user can do about it
	since int    // the CUDA whose header has it, as MinDriver is written; 0: all
}

// meanings are by code. CheckHeaders compares names and numbers with cuda.h.
var meanings = map[int]meaning{
	4:   {name: "DEINITIALIZED", hint: "the driver is shutting down: the process ends while CUDA is still in use"},
	34:  {name: "STUB_LIBRARY", hint: "this libcuda is only for building: take CUDA's stubs folder out of LD_LIBRARY_PATH"},
	46:  {name: "DEVICE_UNAVAILABLE", hint: "another process may have the GPU for itself (nvidia-smi names it, and the compute mode)"},
	200: {name: "INVALID_IMAGE", hint: "the kernel's image is damaged: remove the cache of kernels"},
	209: {name: "NO_BINARY_FOR_GPU", hint: "the kernel was compiled for another GPU: remove the cache of kernels"},
	214: {name: "ECC_UNCORRECTABLE", lost: true},
	218: {name: "INVALID_PTX", hint: "the kernel's image is damaged or for another GPU: remove the cache of kernels"},
	220: {name: "NVLINK_UNCORRECTABLE", lost: true},
	222: {name: "UNSUPPORTED_PTX_VERSION", hint: "the driver is older than the compiler that made the kernel"},
	226: {name: "CONTAINED", lost: true, since: 12080},
	700: {name: "ILLEGAL_ADDRESS", lost: true},
	702: {name: "LAUNCH_TIMEOUT", lost: true},
	709: {name: "CONTEXT_IS_DESTROYED", lost: true},
	710: {name: "ASSERT", lost: true},
	714: {name: "HARDWARE_STACK_ERROR", lost: true},
	715: {name: "ILLEGAL_INSTRUCTION", lost: true},
	716: {name: "MISALIGNED_ADDRESS", lost: true},
	717: {name: "INVALID_ADDRESS_SPACE", lost: true},
	718: {name: "INVALID_PC", lost: true},
	719: {name: "LAUNCH_FAILED", lost: true},
	721: {name: "TENSOR_MEMORY_LEAK", lost: true, since: 12080},
	802: {name: "SYSTEM_NOT_READY", hint: "the GPUs are not ready yet: on machines with NVSwitch the fabric manager must run"},
	803: {name: "SYSTEM_DRIVER_MISMATCH", hint: "libcuda and the kernel's module have different versions: reboot, or reinstall the driver"},
	804: {name: "COMPAT_NOT_SUPPORTED_ON_DEVICE", hint: "the forward-compatible libcuda does not serve this GPU: take CUDA's compat folder out of LD_LIBRARY_PATH"},
	810: {name: "MPS_CLIENT_TERMINATED", lost: true},
	911: {name: "EXTERNAL_DEVICE", lost: true},
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
