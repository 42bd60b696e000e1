//go:build !noasm

package subnormal

// set makes the thread count subnormal numbers as zeros, or not.
func set(zeros bool)

// Zeros says whether the thread counts subnormal numbers as zeros.
func Zeros() bool
