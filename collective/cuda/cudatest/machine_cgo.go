//go:build cgo

package cudatest

// #include <dlfcn.h>
// #include <stdlib.h>
//
// typedef struct knobs {
// 	int (*knob)(const char *, const char *);
// 	long (*calls)(const char *);
// 	long (*live)(const char *, char *, size_t);
// 	void (*reset)(void), (*guards)(void);
// } knobs;
//
// static int open_knobs(const char *path, knobs *k) {
// 	void *library = dlopen(path, RTLD_NOW);
// 	return library && (*(void **)&k->knob = dlsym(library, "eb_knob")) && (*(void **)&k->calls = dlsym(library, "eb_calls")) &&
// 		(*(void **)&k->live = dlsym(library, "eb_live")) && (*(void **)&k->reset = dlsym(library, "eb_reset")) &&
// 		(*(void **)&k->guards = dlsym(library, "eb_guards"));
// }
// static int knob(knobs k, const char *name, const char *value) { return k.knob(name, value); }
// static long calls(knobs k, const char *f) { return k.calls(f); }
// static long live(knobs k, const char *kind, char *report, size_t n) { return k.live(kind, report, n); }
// static void reset(knobs k) { k.reset(); }
// static void guards(knobs k) { k.guards(); }
import "C"

import (
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"
)

const haveCgo = true

// Machine is what the double of libcuda simulates in this process.
type Machine struct {
	tb testing.TB
	k  C.knobs
}

func openMachine(path string) (*Machine, error) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	m := &Machine{}
	if C.open_knobs(p, &m.k) == 0 {
		return nil, errors.New(path + " is no double of libcuda")
	}
	return m, nil
}

func (m *Machine) reset()  { C.reset(m.k) }
func (m *Machine) guards() { C.guards(m.k) }

func (m *Machine) set(knob, value string) bool {
	k, v := C.CString(knob), C.CString(value)
	defer C.free(unsafe.Pointer(k))
	defer C.free(unsafe.Pointer(v))
	return C.knob(m.k, k, v) == 0
}

// Fail makes the n-th call of a function from now on (each one, if n is 0) return
// a code and do nothing, unless what it does is to destroy. The function "*" is
// any but cuCtxSetCurrent, whose calls depend on Go's scheduler. "run:NAME" is not
// a call but what runs on a stream, a kernel or a function of libcuda: the device
// is broken by the code from then on.
func (m *Machine) Fail(function string, n, code int) {
	m.tb.Helper()
	m.Set("FAULT", fmt.Sprintf("%s=%d=%d", function, n, code))
}

// Slow makes the n-th call of a function from now on (each one, if n is 0) wait
// first: for so long, or until Wake.
func (m *Machine) Slow(function string, n int, d time.Duration) {
	m.tb.Helper()
	m.Set("FAULT", fmt.Sprintf("%s=%d=~%d", function, n, d.Milliseconds()))
}

// Wake ends the waits that Slow has brought about.
func (m *Machine) Wake() {
	m.tb.Helper()
	m.Set("WAKE", "")
}

// Calls is how often a function was called in this test; of "*", all together.
func (m *Machine) Calls(function string) int {
	f := C.CString(function)
	defer C.free(unsafe.Pointer(f))
	return int(C.calls(m.k, f))
}

// Live is how many objects of a kind there are: contexts, streams, events,
// modules, graphs, executable graphs, device memory, pinned memory, or a kind of
// another library's; of "*", all together.
func (m *Machine) Live(kind string) int {
	k := C.CString(kind)
	defer C.free(unsafe.Pointer(k))
	return int(C.live(m.k, k, nil, 0))
}

// Left lists all objects that there are, "" if there are none.
func (m *Machine) Left() string {
	var report [1024]C.char
	all := C.CString("*")
	defer C.free(unsafe.Pointer(all))
	C.live(m.k, all, &report[0], C.size_t(len(report)))
	return C.GoString(&report[0])
}
