//go:build cgo && !nodnnl

package dnnl

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by calls on a closed engine or kernel.
var ErrClosed = errors.New("dnnl: closed")

func closed(what string) error { return fmt.Errorf("%s: %w", what, ErrClosed) }

// statusNames are the meanings of dnnl_status_t.
var statusNames = map[int]string{
	1: "out of memory",
	2: "invalid arguments",
	3: "not implemented for this problem",
	4: "iteration over implementations ended (internal)",
	5: "runtime error",
	6: "a required argument is missing (internal)",
}

// check turns a status of the C layer into an error that names the problem and
// the call that went wrong.
func check(what string, st C.int, where *C.char) error {
	if st == 0 {
		return nil
	}
	return checkStatus(what, int(st), C.GoString(where))
}

func checkStatus(what string, st int, where string) error {
	name, ok := statusNames[st]
	if !ok {
		name = fmt.Sprintf("status %d", st)
	}
	return fmt.Errorf("dnnl: %s: %s: %s", what, where, name)
}
