//go:build cgo

package cudnn

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"cmp"
	"fmt"
	"unsafe"

	"ebtrain/collective/cuda"
)

// Library is cuDNN on one device.
type Library struct {
	dev       *cuda.Device
	path      string
	version   int
	api       *C.eb_cudnn
	base      handle             // plans are made with it
	streams   map[uintptr]handle // runs, by stream
	workspace int64              // the most bytes that a plan may need
	say       func(string)
}

type handle uintptr

// New opens cuDNN for a device. Plans that need more than workspace bytes are left
// out. Errors: *cuda.LoadError where it is not found, *VersionError, *Error.
func New(dev *cuda.Device, workspace int64) (*Library, error) {
	lib, err := cuda.Open(cuda.CuDNN)
	if err != nil {
		return nil, err
	}
	api, err := resolve(lib)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: dev, path: lib.Path(), api: api, workspace: workspace, streams: map[uintptr]handle{}, say: func(string) {}}
	l.version = int(C.eb_cudnn_version(api))
	err = l.fits()
	if err == nil {
		err = dev.Attach(func() (err error) { l.base, err = l.newHandle(); return err })
	}
	if err != nil {
		C.free(unsafe.Pointer(api))
		return nil, err
	}
	return l, nil
}

// resolve fills the table of functions.
func resolve(lib *cuda.Library) (*C.eb_cudnn, error) {
	api := (*C.eb_cudnn)(C.calloc(1, C.sizeof_eb_cudnn))
	for i := 0; ; i++ {
		name := C.eb_cudnn_name(C.int(i))
		if name == nil {
			return api, nil
		}
		f, err := lib.Symbol(C.GoString(name))
		if err != nil {
			C.free(unsafe.Pointer(api))
			return nil, &VersionError{lib.Path(), fmt.Sprintf("it has no function %s, so it is no cuDNN 9", C.GoString(name))}
		}
		C.eb_cudnn_put(api, C.int(i), C.uintptr_t(f))
	}
}

// fits checks the version.
func (l *Library) fits() error {
	if l.version/10000 == 9 {
		return nil
	}
	return &VersionError{l.path, fmt.Sprintf("it is cuDNN %s, and this program was made for cuDNN 9; install that, or name its folder in %s", l.versionText(), cuda.LibsVariable)}
}

func (l *Library) versionText() string {
	if l.version < 90000 { // as cuDNN 8 counted
		return fmt.Sprintf("%d.%d.%d", l.version/1000, l.version/100%10, l.version%100)
	}
	return fmt.Sprintf("%d.%d.%d", l.version/10000, l.version/100%100, l.version%100)
}

// Name is "cuDNN 9.19.0".
func (l *Library) Name() string { return "cuDNN " + l.versionText() }

// Listen has a function told, in a sentence, of engines that are left out because they
// fail.
func (l *Library) Listen(say func(string)) { l.say = say }

// Close releases the handles. Every stream that it was used on is idle.
func (l *Library) Close() error {
	err := l.dev.Attach(func() error {
		var errs []error
		for s, h := range l.streams {
			errs = append(errs, l.closeHandle(h))
			delete(l.streams, s)
		}
		errs = append(errs, l.closeHandle(l.base))
		l.base = 0
		return cmp.Or(errs...)
	})
	C.free(unsafe.Pointer(l.api))
	l.api = nil
	return err
}

func (l *Library) newHandle() (handle, error) {
	var h C.uintptr_t
	var why C.eb_why
	status := C.eb_cudnn_create(l.api, &h, &why)
	return handle(h), l.check(status, &why, "")
}

func (l *Library) closeHandle(h handle) error {
	var why C.eb_why
	return l.check(C.eb_cudnn_destroy(l.api, C.uintptr_t(h), &why), &why, "")
}

// on is the handle of a stream. It is made at the stream's first run, and allocates then
// and when it is first used, which no capture allows.
func (l *Library) on(s *cuda.Stream) (handle, error) {
	stream := s.Handle()
	if h, ok := l.streams[stream]; ok {
		return h, nil
	}
	capturing, err := s.Capturing()
	if err != nil {
		return 0, err
	}
	if capturing {
		return 0, fmt.Errorf("cuDNN: stream %s is captured before any run on it: let one come first", s.Name())
	}
	h, err := l.newHandle()
	if err != nil {
		return 0, err
	}
	var why C.eb_why
	if err := l.check(C.eb_cudnn_stream(l.api, C.uintptr_t(h), C.uintptr_t(stream), &why), &why, ""); err != nil {
		return 0, cmp.Or(err, l.closeHandle(h))
	}
	l.streams[stream] = h
	return h, nil
}

// check makes an error of a status.
func (l *Library) check(status C.int, why *C.eb_why, on string) error {
	if status == C.EB_CUDNN_STATUS_SUCCESS {
		return nil
	}
	return &Error{Call: C.GoString(why.call), On: on, Status: int(status), Name: C.GoString(&why.name[0]), Text: C.GoString(&why.text[0]), Path: l.path}
}
