package cuda

import (
	"unsafe"

	"ebtrain/collective"
)

// Vec is n bytes at p as a collective.Vec of U8, which only a Comm over this
// device can use.
func (p Ptr) Vec(n int) collective.Vec {
	if n == 0 {
		return collective.Vec{Type: collective.U8}
	}
	at := uintptr(p)
	return collective.Vec{Type: collective.U8, Len: n, Ptr: *(*unsafe.Pointer)(unsafe.Pointer(&at))}
}

// AddressOf is where a Vec in a device's memory lies.
func AddressOf(v collective.Vec) Ptr { return Ptr(uintptr(v.Ptr)) }
