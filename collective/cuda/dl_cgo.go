//go:build cgo

package cuda

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"unsafe"
)

const haveCgo = true

// dlopen opens a shared object by its path or soname.
func dlopen(path string) (uintptr, error) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	var why [512]C.char
	h := C.eb_open(p, &why[0], C.size_t(len(why)))
	if h == 0 {
		return 0, errors.New(C.GoString(&why[0]))
	}
	return uintptr(h), nil
}

func dlclose(h uintptr) { C.eb_close(C.handle(h)) }

func dlsym(h uintptr, name string) uintptr {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return uintptr(C.eb_symbol(C.handle(h), n))
}

// dlfile is the file that a library was opened from.
func dlfile(f uintptr) string {
	var path [4096]C.char
	C.eb_where(C.handle(f), &path[0], C.size_t(len(path)))
	return C.GoString(&path[0])
}

// callSize calls size_t f(void), callInt int f(int *).
func callSize(f uintptr) int { return int(C.eb_call_size(C.handle(f))) }

func callInt(f uintptr) (value, code int) {
	var v C.int
	code = int(C.eb_call_int(C.handle(f), &v))
	return int(v), code
}
