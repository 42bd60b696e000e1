package dnnl

import (
	"errors"
	"fmt"
)

// ErrAbsent is what New returns in a build without oneDNN.
var ErrAbsent = errors.New("dnnl: not built in (install libdnnl-dev and build with cgo, without -tags nodnnl)")

// LibraryVariable names the file of oneDNN's library in the environment. Without
// it the dynamic linker searches where it searches for all.
const LibraryVariable = "EBTRAIN_LIBDNNL"

// LibraryError says why oneDNN cannot be had in this process.
type LibraryError struct {
	Library string // the file or name that was tried
	Missing bool   // it is not there; otherwise it cannot be used
	Why     string // what is wrong with it; of a missing one, what to do
}

func (e *LibraryError) Error() string {
	if e.Missing {
		return fmt.Sprintf("%s was not found: %s", e.Library, e.Why)
	}
	return fmt.Sprintf("%s cannot be used: %s", e.Library, e.Why)
}
