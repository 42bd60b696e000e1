//go:build !noasm

package native

import (
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

// transpositions are those of a micro-kernel's instruction set, for rows of at least min
// floats; min is 0 where there are none.
func transpositions(mk micro.Kernel) (k transpose.Kernels, min int) {
	switch mk.Name {
	case "AVX-512":
		return transpose.AVX512(), 1
	case "AVX2":
		return transpose.AVX2(), 4
	}
	return k, 0
}
