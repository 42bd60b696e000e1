//go:build !noasm

package threads

// FlushSubnormals makes the OS thread, which the caller has locked, count subnormal
// numbers as zero, as operands and as results: Intel's processors take a hundred
// cycles and more for each of them. Threads that C code starts from there inherit it,
// those of Go's scheduler do not.
func FlushSubnormals()

// Flushes says whether the OS thread counts subnormal numbers as zero.
func Flushes() bool
