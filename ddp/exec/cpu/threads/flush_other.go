//go:build !amd64 || noasm

package threads

// FlushSubnormals does nothing here: subnormal numbers are computed with.
func FlushSubnormals() {}

// Flushes is false.
func Flushes() bool { return false }
