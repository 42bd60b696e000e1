//go:build !noasm

package philox

import "golang.org/x/sys/cpu"

// available are the sets that the processor has.
var available = [...]bool{plain: true, avx2: cpu.X86.HasAVX2, avx512: cpu.X86.HasAVX512F}

// wide is the set in use, the widest that is available.
var wide = widest()

func widest() set {
	s := avx512
	for !available[s] {
		s--
	}
	return s
}

// The functions of wide_amd64.go in each set. A table of them would be shorter, but Go
// takes what is given to a function of a table for kept, and allocates it.

//go:noescape
func blocks8AVX512(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)

//go:noescape
func samples8AVX512(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)

//go:noescape
func boxMuller8AVX512(z0, z1 *[8]float64, w0, w1 *[8]uint64)

//go:noescape
func uniformsAVX512(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)

//go:noescape
func normalsAVX512(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)

//go:noescape
func blocks8AVX2(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)

//go:noescape
func samples8AVX2(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)

//go:noescape
func boxMuller8AVX2(z0, z1 *[8]float64, w0, w1 *[8]uint64)

//go:noescape
func uniformsAVX2(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)

//go:noescape
func normalsAVX2(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
