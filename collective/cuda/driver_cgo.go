//go:build cgo

package cuda

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"
)

// Go's constants are those of the ABI: any other is negative, and no uint.
const (
	_ uint = -(codeInvalidValue ^ C.EB_CUDA_ERROR_INVALID_VALUE)
	_ uint = -(codeOutOfMemory ^ C.EB_CUDA_ERROR_OUT_OF_MEMORY)
	_ uint = -(codeStub ^ C.EB_CUDA_ERROR_STUB_LIBRARY)
	_ uint = -(codeNoDevice ^ C.EB_CUDA_ERROR_NO_DEVICE)
	_ uint = -(codeInvalidDevice ^ C.EB_CUDA_ERROR_INVALID_DEVICE)
	_ uint = -(codeNotReady ^ C.EB_CUDA_ERROR_NOT_READY)
	_ uint = -(entering ^ C.EB_ENTERING)
	_ uint = -(attributeSMs ^ C.EB_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
	_ uint = -(attributeL2 ^ C.EB_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
	_ uint = -(attributeMajor ^ C.EB_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
	_ uint = -(attributeMinor ^ C.EB_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
	_ uint = -(eventUntimed ^ C.EB_CU_EVENT_DISABLE_TIMING)
	_ uint = -(recordExternal ^ C.EB_CU_EVENT_RECORD_EXTERNAL)
)

// libcuda is the driver as it was loaded.
type libcuda struct{ t *C.eb_cuda }

func newDriver(l *Library) (driver, error) {
	var lacks *C.char
	t := C.eb_resolve(C.handle(l.handle), &lacks)
	if t == nil {
		return nil, fmt.Errorf("%w: %s has no function %s", ErrDriverTooOld, l.path, C.GoString(lacks))
	}
	return libcuda{t}, nil
}

func (d libcuda) init() int { return int(C.eb_init(d.t)) }

func (d libcuda) errorText(code int) (name, text string) {
	return C.GoString(C.eb_error_name(d.t, C.int(code))), C.GoString(C.eb_error_text(d.t, C.int(code)))
}

func (d libcuda) deviceCount() (int, int) {
	var n C.int
	code := C.eb_device_count(d.t, &n)
	return int(n), int(code)
}

func (d libcuda) device(ordinal int) (int, int) {
	var dev C.int
	code := C.eb_device(d.t, C.int(ordinal), &dev)
	return int(dev), int(code)
}

func (d libcuda) deviceName(device int) (string, int) {
	var text [256]C.char
	code := C.eb_device_name(d.t, C.int(device), &text[0], C.int(len(text)))
	return C.GoString(&text[0]), int(code)
}

func (d libcuda) deviceBus(device int) (string, int) {
	var text [64]C.char
	code := C.eb_device_bus(d.t, C.int(device), &text[0], C.int(len(text)))
	return C.GoString(&text[0]), int(code)
}

func (d libcuda) deviceUUID(device int) (id [16]byte, code int) {
	code = int(C.eb_device_uuid(d.t, C.int(device), (*C.uchar)(&id[0])))
	return id, code
}

func (d libcuda) deviceWholeUUID(device int) (id [16]byte, code int) {
	code = int(C.eb_device_whole_uuid(d.t, C.int(device), (*C.uchar)(&id[0])))
	return id, code
}

func (d libcuda) deviceMemory(device int) (int64, int) {
	var n C.size_t
	code := C.eb_device_memory(d.t, C.int(device), &n)
	return int64(n), int(code)
}

func (d libcuda) deviceAttribute(device, attribute int) (int, int) {
	var v C.int
	code := C.eb_device_attribute(d.t, C.int(device), C.int(attribute), &v)
	return int(v), int(code)
}

func (d libcuda) retain(device int) (uintptr, int) {
	var ctx C.handle
	code := C.eb_retain(d.t, C.int(device), &ctx)
	return uintptr(ctx), int(code)
}

func (d libcuda) release(device int) int { return int(C.eb_release(d.t, C.int(device))) }

func (d libcuda) enter(ctx uintptr) int { return int(C.eb_enter(d.t, C.handle(ctx))) }
func (d libcuda) sync(ctx uintptr) int  { return int(C.eb_sync(d.t, C.handle(ctx))) }

func (d libcuda) memInfo(ctx uintptr) (int64, int64, int) {
	var free, total C.size_t
	code := C.eb_mem_info(d.t, C.handle(ctx), &free, &total)
	return int64(free), int64(total), int(code)
}

func (d libcuda) alloc(ctx uintptr, bytes int64) (Ptr, int) {
	var p C.uint64_t
	code := C.eb_alloc(d.t, C.handle(ctx), C.size_t(bytes), &p)
	return Ptr(p), int(code)
}

func (d libcuda) free(ctx uintptr, p Ptr) int {
	return int(C.eb_free(d.t, C.handle(ctx), C.uint64_t(p)))
}

func (d libcuda) pin(ctx uintptr, bytes int) (unsafe.Pointer, Ptr, int) {
	var host unsafe.Pointer
	var p C.uint64_t
	code := C.eb_pin(d.t, C.handle(ctx), C.size_t(bytes), &host, &p)
	return host, Ptr(p), int(code)
}

func (d libcuda) unpin(ctx uintptr, host unsafe.Pointer) int {
	return int(C.eb_unpin(d.t, C.handle(ctx), host))
}

func (d libcuda) stream(ctx uintptr, priority int) (uintptr, int) {
	var s C.handle
	code := C.eb_stream(d.t, C.handle(ctx), C.int(priority), &s)
	return uintptr(s), int(code)
}

func (d libcuda) streamClose(ctx, s uintptr) int {
	return int(C.eb_stream_close(d.t, C.handle(ctx), C.handle(s)))
}

func (d libcuda) streamSync(ctx, s uintptr) int {
	return int(C.eb_stream_sync(d.t, C.handle(ctx), C.handle(s)))
}

func (d libcuda) streamQuery(ctx, s uintptr) int {
	return int(C.eb_stream_query(d.t, C.handle(ctx), C.handle(s)))
}

func (d libcuda) streamWait(ctx, s, event uintptr, flags uint32) int {
	return int(C.eb_stream_wait(d.t, C.handle(ctx), C.handle(s), C.handle(event), C.uint(flags)))
}

func (d libcuda) copyIn(ctx, s uintptr, to Ptr, from unsafe.Pointer, n int) int {
	return int(C.eb_copy_in(d.t, C.handle(ctx), C.handle(s), C.uint64_t(to), from, C.size_t(n)))
}

func (d libcuda) copyOut(ctx, s uintptr, to unsafe.Pointer, from Ptr, n int) int {
	return int(C.eb_copy_out(d.t, C.handle(ctx), C.handle(s), to, C.uint64_t(from), C.size_t(n)))
}

func (d libcuda) copyDevice(ctx, s uintptr, to, from Ptr, n int64) int {
	return int(C.eb_copy(d.t, C.handle(ctx), C.handle(s), C.uint64_t(to), C.uint64_t(from), C.size_t(n)))
}

func (d libcuda) set8(ctx, s uintptr, to Ptr, value byte, n int64) int {
	return int(C.eb_set8(d.t, C.handle(ctx), C.handle(s), C.uint64_t(to), C.uchar(value), C.size_t(n)))
}

func (d libcuda) set32(ctx, s uintptr, to Ptr, value uint32, n int64) int {
	return int(C.eb_set32(d.t, C.handle(ctx), C.handle(s), C.uint64_t(to), C.uint32_t(value), C.size_t(n)))
}

func (d libcuda) launch(ctx, s, f uintptr, grid, block, shared uint32, args []byte) int {
	return int(C.eb_launch(d.t, C.handle(ctx), C.handle(s), C.handle(f), C.uint(grid), C.uint(block), C.uint(shared), unsafe.Pointer(unsafe.SliceData(args))))
}

// hostFunc gives the function to ebHostFunc by a handle, which is used once.
func (d libcuda) hostFunc(ctx, s uintptr, f func()) int {
	h := cgo.NewHandle(f)
	code := C.eb_host_func(d.t, C.handle(ctx), C.handle(s), C.handle(h))
	if code != success {
		h.Delete()
	}
	return int(code)
}

func (d libcuda) event(ctx uintptr, flags uint32) (uintptr, int) {
	var e C.handle
	code := C.eb_event(d.t, C.handle(ctx), C.uint(flags), &e)
	return uintptr(e), int(code)
}

func (d libcuda) eventClose(ctx, e uintptr) int {
	return int(C.eb_event_close(d.t, C.handle(ctx), C.handle(e)))
}

func (d libcuda) eventRecord(ctx, e, s uintptr, flags uint32) int {
	return int(C.eb_event_record(d.t, C.handle(ctx), C.handle(e), C.handle(s), C.uint(flags)))
}

func (d libcuda) eventQuery(ctx, e uintptr) int {
	return int(C.eb_event_query(d.t, C.handle(ctx), C.handle(e)))
}

func (d libcuda) eventSync(ctx, e uintptr) int {
	return int(C.eb_event_sync(d.t, C.handle(ctx), C.handle(e)))
}

func (d libcuda) eventElapsed(ctx, from, to uintptr) (float32, int) {
	var ms C.float
	code := C.eb_event_elapsed(d.t, C.handle(ctx), C.handle(from), C.handle(to), &ms)
	return float32(ms), int(code)
}

func (d libcuda) load(ctx uintptr, image []byte) (uintptr, int) {
	var m C.handle
	code := C.eb_load(d.t, C.handle(ctx), unsafe.Pointer(unsafe.SliceData(image)), &m)
	return uintptr(m), int(code)
}

func (d libcuda) unload(ctx, m uintptr) int {
	return int(C.eb_unload(d.t, C.handle(ctx), C.handle(m)))
}

func (d libcuda) function(ctx, m uintptr, name string) (uintptr, int) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var f C.handle
	code := C.eb_function(d.t, C.handle(ctx), C.handle(m), text, &f)
	return uintptr(f), int(code)
}

func (d libcuda) force(ctx, f uintptr) (int64, int) {
	var n C.longlong
	code := C.eb_force(d.t, C.handle(ctx), C.handle(f), &n)
	return int64(n), int(code)
}

func (d libcuda) capture(ctx, s uintptr) int {
	return int(C.eb_capture(d.t, C.handle(ctx), C.handle(s)))
}

func (d libcuda) captureEnd(ctx, s uintptr) (uintptr, int) {
	var g C.handle
	code := C.eb_capture_end(d.t, C.handle(ctx), C.handle(s), &g)
	return uintptr(g), int(code)
}

func (d libcuda) capturing(ctx, s uintptr) (int, int) {
	var status C.int
	code := C.eb_capturing(d.t, C.handle(ctx), C.handle(s), &status)
	return int(status), int(code)
}

func (d libcuda) graphNodes(ctx, g uintptr) (int, int) {
	var n C.size_t
	code := C.eb_graph_nodes(d.t, C.handle(ctx), C.handle(g), &n)
	return int(n), int(code)
}

func (d libcuda) graphClose(ctx, g uintptr) int {
	return int(C.eb_graph_close(d.t, C.handle(ctx), C.handle(g)))
}

func (d libcuda) instantiate(ctx, g uintptr) (uintptr, int) {
	var e C.handle
	code := C.eb_instantiate(d.t, C.handle(ctx), C.handle(g), &e)
	return uintptr(e), int(code)
}

func (d libcuda) execUpload(ctx, e, s uintptr) int {
	return int(C.eb_exec_upload(d.t, C.handle(ctx), C.handle(e), C.handle(s)))
}

func (d libcuda) execLaunch(ctx, e, s uintptr) int {
	return int(C.eb_exec_launch(d.t, C.handle(ctx), C.handle(e), C.handle(s)))
}

func (d libcuda) execClose(ctx, e uintptr) int {
	return int(C.eb_exec_close(d.t, C.handle(ctx), C.handle(e)))
}
