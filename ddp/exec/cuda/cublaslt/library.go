//go:build cgo

package cublaslt

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"ebtrain/collective/cuda"
)

// Go's constant is that of the ABI: any other is negative, and no uint.
const _ uint = -(statusNoMemory ^ C.EB_CUBLAS_STATUS_ALLOC_FAILED)

// Library is cuBLASLt on one device.
type Library struct {
	dev       *cuda.Device
	api       *C.eb_cublaslt
	handle    C.uintptr_t
	version   int
	workspace int64 // the most bytes that an algorithm may need
}

// New opens cuBLASLt for a device. Algorithms that need more than workspace bytes are
// left out. Errors: *cuda.LoadError where it is not found, *Error.
func New(dev *cuda.Device, workspace int64) (*Library, error) {
	lib, err := cuda.Open(cuda.CublasLt)
	if err != nil {
		return nil, err
	}
	api, err := resolve(lib)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: dev, api: api, workspace: workspace, version: int(C.eb_cublaslt_version(api))}
	err = dev.Attach(func() error {
		var why C.eb_why
		return l.check(C.eb_cublaslt_create(api, &l.handle, &why), &why, "")
	})
	if err != nil {
		C.free(unsafe.Pointer(api))
		return nil, err
	}
	return l, nil
}

// resolve fills the table of functions.
func resolve(lib *cuda.Library) (*C.eb_cublaslt, error) {
	api := (*C.eb_cublaslt)(C.calloc(1, C.sizeof_eb_cublaslt))
	for i := 0; ; i++ {
		name := C.eb_cublaslt_name(C.int(i))
		if name == nil {
			return api, nil
		}
		f, err := lib.Symbol(C.GoString(name))
		if err != nil {
			C.free(unsafe.Pointer(api))
			return nil, err
		}
		C.eb_cublaslt_put(api, C.int(i), C.uintptr_t(f))
	}
}

// Name is "cuBLASLt 13.1.0".
func (l *Library) Name() string {
	return fmt.Sprintf("cuBLASLt %d.%d.%d", l.version/10000, l.version/100%100, l.version%100)
}

// Close releases the handle.
func (l *Library) Close() error {
	err := l.dev.Attach(func() error {
		var why C.eb_why
		return l.check(C.eb_cublaslt_destroy(l.api, l.handle, &why), &why, "")
	})
	C.free(unsafe.Pointer(l.api))
	l.api = nil
	return err
}

// check makes an error of a status.
func (l *Library) check(status C.int, why *C.eb_why, on string) error {
	if status == C.EB_CUBLAS_STATUS_SUCCESS {
		return nil
	}
	return &Error{Call: C.GoString(why.call), On: on, Status: int(status), Name: C.GoString(&why.name[0]), Text: C.GoString(&why.text[0])}
}
