package winograd

//go:generate go run ./_gen .

import (
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

// isa is what an instruction set brings.
type isa struct {
	kernel     micro.Kernel // its columns are the width of a panel
	int16s     *int16s      // nil if there are none faster than float32
	six, five  loops        // for schemes of six and five points
	filterCost float64      // see cost.go
	transpose  transpose.Kernels
}

// loops are the loops of the five maps of a scheme.
type loops struct{ input, output, spread, filter, gather func(*pass) }
