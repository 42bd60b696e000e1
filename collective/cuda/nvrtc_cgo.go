//go:build cgo

package cuda

// #include <stdlib.h>
// #include "compiler.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// libnvrtc is NVRTC as it was loaded.
type libnvrtc struct{ t *C.eb_nvrtc }

func newCompiler(l *Library) (compiler, error) {
	var lacks *C.char
	t := C.eb_nvrtc_resolve(C.uintptr_t(l.handle), &lacks)
	if t == nil {
		return nil, &LoadError{Family: NVRTC, Tried: []string{l.path}, Err: fmt.Errorf("%s has no function %s", l.path, C.GoString(lacks))}
	}
	return libnvrtc{t}, nil
}

func (c libnvrtc) errorText(code int) string { return C.GoString(C.eb_nvrtc_error(c.t, C.int(code))) }

func (c libnvrtc) version() (int, int, int) {
	var major, minor C.int
	code := C.eb_nvrtc_version(c.t, &major, &minor)
	return int(major), int(minor), int(code)
}

func (c libnvrtc) archs() ([]int, int) {
	var archs [256]C.int
	var n C.int
	code := C.eb_nvrtc_archs(c.t, &archs[0], C.int(len(archs)), &n)
	var out []int
	for _, a := range archs[:n] {
		out = append(out, int(a))
	}
	return out, int(code)
}

func (c libnvrtc) compile(name, source string, options []string, ptx bool) (t Translation, call string, code int) {
	text, free := cStrings(append([]string{name, source}, options...))
	defer free()
	var out C.eb_compiled
	list := (**C.char)(nil)
	if len(options) > 0 {
		list = &text[2]
	}
	want := C.int(0)
	if ptx {
		want = 1
	}
	C.eb_compile(c.t, text[1], text[0], C.int(len(options)), list, want, &out)
	defer C.free(unsafe.Pointer(out.image))
	defer C.free(unsafe.Pointer(out.ptx))
	defer C.free(unsafe.Pointer(out.log))
	t.Log = strings.TrimRight(C.GoStringN(out.log, C.int(out.log_size)), "\x00")
	if out.code != success {
		return t, C.GoString(out.call), int(out.code)
	}
	t.CUBIN = C.GoBytes(unsafe.Pointer(out.image), C.int(out.image_size))
	t.PTX = strings.TrimRight(C.GoStringN(out.ptx, C.int(out.ptx_size)), "\x00")
	return t, "", success
}

// cStrings copies strings to C's memory, the list of them, too.
func cStrings(s []string) ([]*C.char, func()) {
	memory := C.malloc(C.size_t(len(s)) * C.size_t(unsafe.Sizeof((*C.char)(nil))))
	list := unsafe.Slice((**C.char)(memory), len(s))
	for i := range s {
		list[i] = C.CString(s[i])
	}
	return list, func() {
		for _, p := range list {
			C.free(unsafe.Pointer(p))
		}
		C.free(memory)
	}
}
