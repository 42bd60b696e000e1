//go:build !amd64 || noasm

package tile

// All are the kernels that this CPU can run, best first.
func All() []Kernel { return []Kernel{generic} }
