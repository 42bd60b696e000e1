//go:build !noasm

package amx

import (
	"unsafe"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

// available are the kernels, if the processor and the kernel of the system let this
// process have tiles.
func available() (k kernels, ok bool) {
	x := &cpu.X86
	if !x.HasAMXTile || !x.HasAMXBF16 || !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512BF16 || !permitted() {
		return kernels{}, false
	}
	return kernels{multiplyAMX, roundAMX, pairsAMX, interleaveAMX, gatherAMX, transpose.AVX512()}, true
}

// permitted asks Linux for the registers of tiles, for all threads of the process.
func permitted() bool {
	const request, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, request, tileData, 0)
	return errno == 0
}

//go:noescape
func multiplyAMX(p *block, n int)

//go:noescape
func roundAMX(dst unsafe.Pointer, src *float32, n int)

//go:noescape
func pairsAMX(dst unsafe.Pointer, places *int, a, b *float32, step, n int)

//go:noescape
func interleaveAMX(dst unsafe.Pointer, half, step int, a, b unsafe.Pointer, offsets *int, n int)

//go:noescape
func gatherAMX(dst unsafe.Pointer, row int, rows *unsafe.Pointer, offsets *int, n, steps int)
