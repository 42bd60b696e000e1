//go:build !noasm

package winograd

import (
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

// isas are the instruction sets of this CPU that have transforms, best first.
func isas() (list []isa) {
	for _, k := range micro.All() {
		switch k.Name {
		case "AVX-512":
			list = append(list, isa{kernel: k, six: sixAVX512, five: fiveAVX512, filterCost: 22, transpose: transpose.AVX512(), int16s: newInt16s()})
		case "AVX2":
			list = append(list, isa{kernel: k, six: sixAVX2, five: fiveAVX2, filterCost: 16, transpose: transpose.AVX2()})
		}
	}
	return list
}

// newInt16s is nil without AVX512_VNNI.
func newInt16s() *int16s {
	if k, ok := micro.Int16(); ok {
		return &int16s{k, scaleRows, scaleColumns, prefetch}
	}
	return nil
}

//go:noescape
func prefetch(p uintptr, rows, cols, down, across, bytes int)
