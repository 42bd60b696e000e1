//go:build !amd64 || noasm

package reduce

// vectorAdd would do the first elements with vector instructions.
func vectorAdd[T number](dst []T, srcs ...[]T) int { return 0 }

// vectorScale would do the first elements with vector instructions.
func vectorScale[T number](x []T, r T) int { return 0 }
