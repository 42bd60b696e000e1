//go:build !noasm

package micro

// All are the kernels that this CPU can run, best first.
func All() []Kernel {
	return []Kernel{{Name: "NEON", MR: 6, NR: 16, Run: runKernel6x16}, generic}
}

// Int16 is the kernel of 16-bit integers: there is none.
func Int16() (k Int16Kernel, ok bool) { return k, false }
