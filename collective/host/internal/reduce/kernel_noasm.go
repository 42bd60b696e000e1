//go:build !amd64 || noasm

package reduce

import "ebtrain/collective"

// vectorAdd would do the first elements with vector instructions.
func vectorAdd[T number](dst []T, srcs ...[]T) int { return 0 }

// vectorAll would do the first elements of Everywhere with vector instructions.
func vectorAll(collective.DType, [][]byte, float64) int { return 0 }

// vectorScale would do the first elements with vector instructions.
func vectorScale[T number](x []T, r T) int { return 0 }
