//go:build cgo && !nodnnl

package dnnl

// #include <stdlib.h>
// #include "api.h"
// #include "shim.h"
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// major is the version that this program was built for. No other has the same
// functions.
const major, minor = C.DNNL_VERSION_MAJOR, C.DNNL_VERSION_MINOR

// load fills a table of oneDNN's functions, from the first library of names
// that can be used.
func load() (*C.eb_api, error) {
	if asked := os.Getenv(LibraryVariable); asked != "" {
		return open(asked, "mend or unset "+LibraryVariable)
	}
	return first(names())
}

// names are what oneDNN's library is called: libdnnl.so.3 by its makers,
// libdnnl.so.3.6 in Debian 13, which does not trust them to keep its minor
// versions compatible, and libdnnl.so where it is only built against.
func names() []string {
	list := []string{fmt.Sprintf("libdnnl.so.%d", major)}
	for m := minor; m >= 0; m-- {
		list = append(list, fmt.Sprintf("libdnnl.so.%d.%d", major, m))
	}
	return append(list, "libdnnl.so")
}

// first opens the first library that can be used. Of several errors, one about
// a library that is there says more.
func first(names []string) (*C.eb_api, error) {
	var missing, broken error
	for _, name := range names {
		api, err := open(name, advice())
		var l *LibraryError
		switch {
		case err == nil:
			return api, nil
		case errors.As(err, &l) && l.Missing:
			missing = cmp.Or(missing, err)
		default:
			broken = cmp.Or(broken, err)
		}
	}
	return nil, cmp.Or(broken, missing)
}

// advice is what to do about a library that is missing.
func advice() string {
	packages := map[int]string{2: "libdnnl2", 3: "libdnnl3.6"} // Debian 12 and 13
	if name := packages[major]; name != "" {
		return "apt-get install " + name + " for the other engine"
	}
	return fmt.Sprintf("install oneDNN %d for the other engine", major)
}

func open(library, advice string) (*C.eb_api, error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var why [512]C.char
	var api *C.eb_api
	switch C.eb_api_open(name, &api, &why[0], C.size_t(len(why))) {
	case C.EB_LOADED:
		return api, nil
	case C.EB_MISSING:
		return nil, &LibraryError{Library: library, Missing: true, Why: advice}
	}
	return nil, &LibraryError{Library: library, Why: C.GoString(&why[0])}
}
