//go:build !(amd64 || arm64) || noasm

package micro

// All are the kernels that this CPU can run, best first.
func All() []Kernel { return []Kernel{generic} }

// Int16 is the kernel of 16-bit integers: there is none.
func Int16() (k Int16Kernel, ok bool) { return k, false }
