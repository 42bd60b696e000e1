package winograd

//go:generate go run ./_gen .

import "ebtrain/ddp/exec/cpu/linalg/micro"

// isa is what an instruction set brings.
type isa struct {
	kernel     micro.Kernel // its columns are the width of a panel
	int16s     *int16s      // nil if there are none faster than float32
	six, five  loops        // for schemes of six and five points
	filterCost float64      // see cost.go
	// toColumns transposes 16 rows, step floats apart, of taps elements, 4 to
	// 16, to columns one after the other; toRows back. Columns from taps on may
	// be overwritten.
	toColumns func(dst, src *float32, step, taps int)
	toRows    func(dst *float32, step int, src *float32, taps int)
}

// loops are the loops of the five maps of a scheme.
type loops struct{ input, output, spread, filter, gather func(*pass) }
