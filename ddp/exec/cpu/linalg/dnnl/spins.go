//go:build cgo && !nodnnl

package dnnl

import (
	"os"
	"syscall"
)

// ShortSpins starts the program over, once, so that the workers of GNU OpenMP
// sleep after some microseconds without work, not after 3 ms: all that time
// they take a core from whoever computes what follows a convolution. libgomp
// reads its environment when it is loaded, before main, so it cannot be told
// later. Call it first in main. It does nothing if the environment says how
// OpenMP waits, and returns, to a slower program, if it cannot start itself.
func ShortSpins() {
	if os.Getenv("GOMP_SPINCOUNT") != "" || os.Getenv("OMP_WAIT_POLICY") != "" {
		return
	}
	if self, err := os.Executable(); err == nil {
		_ = syscall.Exec(self, os.Args, append(os.Environ(), "GOMP_SPINCOUNT=1000"))
	}
}
