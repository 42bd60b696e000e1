package winograd

import "ebtrain/ddp/exec/cpu/tile"

// isa is what an instruction set brings: the micro-kernel, whose columns are the
// width of all panels, and the transforms. isas are those that this CPU has.
type isa struct {
	tile   tile.Kernel
	loops6 loops
	loops5 loops
	transposition
}

// loops are the loops of the five maps of a scheme.
type loops struct{ input, output, spread, filter, gather func(*pass) }

// transposition is of the first taps elements, 4 to 16, of 16 rows that begin
// step floats apart: to columns of 16, one after the other, and back. Columns
// from taps on may be overwritten.
type transposition struct {
	toColumns func(dst, src *float32, step, taps int)
	toRows    func(dst *float32, step int, src *float32, taps int)
}
