//go:build !amd64 || noasm

package micro

// All are the kernels that this CPU can run, best first.
func All() []Kernel { return []Kernel{generic} }

// OfIntegers is the kernel of 16-bit integers: there is none.
func OfIntegers() (k Scaled, ok bool) { return k, false }
