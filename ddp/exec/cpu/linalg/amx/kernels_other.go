//go:build !amd64 || noasm

package amx

// available says that there are no kernels.
func available() (k kernels, ok bool) { return kernels{}, false }
