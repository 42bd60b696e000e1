//go:build !noasm

package cpu

import "golang.org/x/sys/cpu"

// hasTiles says whether the processor has the tile machine's instructions.
var hasTiles = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL

// tileHandlers are the addresses of the instructions' code, by tileFn.
var tileHandlers [numTileFn]uintptr

// tileRun runs a program on some tiles, which is more than 0.
//
//go:noescape
func tileRun(code *tileOp, counters *[4]uintptr, tiles int)
