//go:build !amd64 || noasm

package subnormal

// set does nothing here: subnormal numbers are computed with.
func set(bool) {}

// Zeros is false.
func Zeros() bool { return false }
