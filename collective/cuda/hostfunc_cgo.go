//go:build cgo

package cuda

// #include <stdint.h>
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// ebHostFunc runs a function of Go on the driver's thread.
//
//export ebHostFunc
func ebHostFunc(data unsafe.Pointer) {
	h := cgo.Handle(uintptr(data))
	f := h.Value().(func())
	h.Delete()
	f()
}
