package cuda

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"
)

// MinDriver is the oldest driver that serves, as CUDA's version × 1000 + minor × 10:
// libraries of CUDA 12 need it, and capture as it is used here came with 11.4.
const MinDriver = 12000

// Ptr is an address in a device's memory. Arithmetic on it is allowed.
type Ptr uint64

// driver is libcuda: a method per function that is called, named as it is
// there. ctx is the context to call in; an int that is returned alone or last is
// the CUresult.
type driver interface {
	init() int
	errorText(code int) (name, text string)
	deviceCount() (n, code int)
	device(ordinal int) (device, code int)
	deviceName(device int) (string, int)
	deviceBus(device int) (string, int)
	deviceUUID(device int) ([16]byte, int)
	deviceWholeUUID(device int) ([16]byte, int)
	deviceMemory(device int) (int64, int)
	deviceAttribute(device, attribute int) (value, code int)
	retain(device int) (ctx uintptr, code int)
	release(device int) int

	enter(ctx uintptr) int
	sync(ctx uintptr) int
	memInfo(ctx uintptr) (free, total int64, code int)
	alloc(ctx uintptr, bytes int64) (Ptr, int)
	free(ctx uintptr, p Ptr) int
	pin(ctx uintptr, bytes int) (host unsafe.Pointer, device Ptr, code int)
	unpin(ctx uintptr, host unsafe.Pointer) int

	stream(ctx uintptr, priority int) (uintptr, int)
	streamClose(ctx, stream uintptr) int
	streamSync(ctx, stream uintptr) int
	streamQuery(ctx, stream uintptr) int
	streamWait(ctx, stream, event uintptr, flags uint32) int
	copyIn(ctx, stream uintptr, to Ptr, from unsafe.Pointer, n int) int
	copyOut(ctx, stream uintptr, to unsafe.Pointer, from Ptr, n int) int
	copyDevice(ctx, stream uintptr, to, from Ptr, n int64) int
	set8(ctx, stream uintptr, to Ptr, value byte, n int64) int
	set32(ctx, stream uintptr, to Ptr, value uint32, n int64) int
	launch(ctx, stream, f uintptr, grid, block, shared uint32, args []byte) int
	hostFunc(ctx, stream uintptr, f func()) int

	event(ctx uintptr, flags uint32) (uintptr, int)
	eventClose(ctx, event uintptr) int
	eventRecord(ctx, event, stream uintptr, flags uint32) int
	eventQuery(ctx, event uintptr) int
	eventSync(ctx, event uintptr) int
	eventElapsed(ctx, from, to uintptr) (ms float32, code int)

	load(ctx uintptr, image []byte) (uintptr, int)
	unload(ctx, module uintptr) int
	function(ctx, module uintptr, name string) (uintptr, int)
	force(ctx, f uintptr) (bytes int64, code int)

	capture(ctx, stream uintptr) int
	captureEnd(ctx, stream uintptr) (graph uintptr, code int)
	capturing(ctx, stream uintptr) (status, code int)
	graphNodes(ctx, graph uintptr) (n, code int)
	graphClose(ctx, graph uintptr) int
	instantiate(ctx, graph uintptr) (exec uintptr, code int)

	bodies() bool // whether the following are there
	graph(ctx uintptr) (graph uintptr, code int)
	condition(ctx, graph uintptr) (condition uint64, code int)
	addBody(ctx, graph uintptr, condition uint64) (body uintptr, code int)
	captureTo(ctx, stream, graph uintptr) int
	nodes(ctx, graph uintptr, n int) (nodes []uintptr, code int)
	nodeKind(ctx, node uintptr) (kind, code int)
	instantiateBody(ctx, graph uintptr) (exec, at uintptr, result, code int)

	execUpload(ctx, exec, stream uintptr) int
	execLaunch(ctx, exec, stream uintptr) int
	execClose(ctx, exec uintptr) int
}

// opened is libcuda, which a process loads once and keeps.
var opened struct {
	sync.Mutex
	driver driver // initialised
}

// DriverVersion is the newest CUDA that the driver serves: 13000 for 13.0. It
// needs no GPU.
func DriverVersion() (int, error) {
	l, err := Open(Driver)
	if err != nil {
		return 0, noDriver(err)
	}
	return driverVersion(l)
}

func driverVersion(l *Library) (int, error) {
	f, err := l.Symbol("cuDriverGetVersion")
	if err != nil {
		return 0, err
	}
	v, code := callInt(f)
	if code != success {
		e := &Error{Call: "cuDriverGetVersion", Code: code, Name: "unknown code", Text: "the driver does not say its version"}
		if code == codeStub {
			e.Name = "CUDA_ERROR_STUB_LIBRARY"
		}
		return 0, e
	}
	return v, nil
}

// noDriver makes ErrNoDriver of a libcuda that was not found.
func noDriver(err error) error {
	if errors.Is(err, ErrNoCgo) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoDriver, err)
}

// start loads and initialises the driver.
func start() (driver, error) {
	opened.Lock()
	defer opened.Unlock()
	if opened.driver != nil {
		return opened.driver, nil
	}
	v, err := DriverVersion()
	if err != nil {
		return nil, err
	}
	if v < MinDriver {
		return nil, fmt.Errorf("%w: it serves CUDA %s, and %s or newer is needed (driver 525 or newer)", ErrDriverTooOld, versionText(v), versionText(MinDriver))
	}
	l, err := Open(Driver)
	if err != nil {
		return nil, noDriver(err)
	}
	d, err := newDriver(l)
	if err != nil {
		return nil, err
	}
	if code := d.init(); code != success {
		return nil, noDevice(check(d, "cuInit", code))
	}
	opened.driver = d
	return d, nil
}

func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// noDevice makes ErrNoDevice of the codes that say so, with what the
// environment has to do with it.
func noDevice(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != codeNoDevice && e.Code != codeInvalidDevice {
		return err
	}
	return fmt.Errorf("%w%s: %w", ErrNoDevice, visible(), err)
}

// visible says that the environment hides all devices.
func visible() string {
	v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if !set {
		return ""
	}
	return fmt.Sprintf(" (CUDA_VISIBLE_DEVICES=%q names none that is there: mend or unset it)", v)
}

// NotVisible says that CUDA_VISIBLE_DEVICES names devices that are not among the n that the
// process may use, "" if it names no more. The driver ends the list silently at the first
// that is not there; at -1 people end it.
func NotVisible(n int) string {
	v := os.Getenv("CUDA_VISIBLE_DEVICES")
	named := 0
	for d := range strings.SplitSeq(v, ",") {
		if d = strings.TrimSpace(d); d == "" || strings.HasPrefix(d, "-") {
			break
		}
		named++
	}
	if named <= n {
		return ""
	}
	return fmt.Sprintf("CUDA_VISIBLE_DEVICES=%q names a device that is not there, number %d of its list: the driver leaves out that and all behind it, so %d of %d are used", v, n+1, n, named)
}

// leaves says that the environment has to do with how many there are.
func leaves() string {
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
		return fmt.Sprintf(" (CUDA_VISIBLE_DEVICES=%q leaves no more)", v)
	}
	return ""
}

// entering marks a code of cuCtxSetCurrent, without which the call itself is not made. No
// code of the driver is as large.
const entering = 1 << 16

// check makes an error of a code.
func check(d driver, call string, code int) error {
	if code == success {
		return nil
	}
	if code&entering != 0 {
		call, code = "cuCtxSetCurrent", code&^entering
	}
	name, text := d.errorText(code)
	return &Error{Call: call, Code: code, Name: name, Text: text}
}
