//go:build !amd64 || noasm

package native

import (
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

// transpositions are those of a micro-kernel's instruction set: there are none.
func transpositions(micro.Kernel) (k transpose.Kernels, min int) { return k, 0 }
