//go:build !noasm

package machine

import "golang.org/x/sys/cpu"

// sets are the instruction sets that the processor has, best first.
func sets() (s []set) {
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512DQ && x.HasFMA { // the last for the loops' sake: see FuzzHandlers
		s = append(s, set{"AVX-512", &handlersAVX512, runAVX512})
	}
	if x.HasAVX2 && x.HasFMA {
		s = append(s, set{"AVX2", &handlersAVX2, runAVX2})
	}
	return s
}

// The addresses of the instructions' code, by opcode.
var handlersAVX512, handlersAVX2 [numOpcodes]uintptr

//go:noescape
func runAVX512(code *linked, counters *[4]uintptr, strips int)

//go:noescape
func runAVX2(code *linked, counters *[4]uintptr, strips int)
