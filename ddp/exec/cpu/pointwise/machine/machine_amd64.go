//go:build !noasm

package machine

import "golang.org/x/sys/cpu"

// Available says whether the processor has the machine's instructions.
var Available = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasFMA // the last for the loops' sake: see FuzzHandlers

// handlers are the addresses of the instructions' code, by opcode.
var handlers [numOpcodes]uintptr

//go:noescape
func run(code *linked, counters *[4]uintptr, strips int)
