package amx

import (
	"math"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

// inGo are the kernels as loops, for processors without AMX.
var inGo = kernels{multiplyInGo, roundInGo, pairsInGo, interleaveInGo, gatherInGo, transpose.Kernels{Columns: columnsInGo, Rows: rowsInGo}}

// at views n numbers some bytes behind p.
func at[T any](p unsafe.Pointer, offset, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(p, offset)), n)
}

func float(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

func multiplyInGo(p *block, n int) {
	for _, b := range unsafe.Slice(p, n) {
		for half := range b.a {
			if half == 1 && b.c[1] == b.c[0] {
				break // the same rows once more
			}
			for r := range lanes {
				for panel := range b.panels {
					c := at[float32](b.c[half], r*b.cRow+panel*rowBytes, lanes)
					if !b.add {
						clear(c)
					}
					for s, offset := range unsafe.Slice(b.offsets, b.steps) {
						a, w := at[uint16](b.a[half], offset+r*b.aRow, stepDepth), at[uint16](b.b, panel*b.bPanel+s*tileBytes, tileBytes/2)
						for k := range stepDepth {
							for j := range lanes {
								c[j] += float(a[k]) * float(w[k/2*2*lanes+2*j+k%2])
							}
						}
					}
				}
			}
		}
	}
}

// bf16 is a number in bfloat16: to nearest, ties to even, NaN to a quiet NaN, and
// subnormal numbers to zero.
func bf16(v float32) uint16 {
	u := math.Float32bits(v)
	switch exponent := u >> 23 & 0xff; {
	case v != v:
		return uint16(u>>16) | 0x40
	case exponent == 0:
		return uint16(u>>16) & 0x8000
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func roundInGo(dst unsafe.Pointer, src *float32, n int) {
	d := at[uint16](dst, 0, n*lanes)
	for i, v := range unsafe.Slice(src, n*lanes) {
		d[i] = bf16(v)
	}
}

func pairsInGo(dst unsafe.Pointer, places *int, a, b *float32, step, n int) {
	for i, place := range unsafe.Slice(places, n) {
		d, x, y := at[uint16](dst, place, 2*lanes), at[float32](unsafe.Pointer(a), i*step, lanes), at[float32](unsafe.Pointer(b), i*step, lanes)
		for j := range lanes {
			d[2*j], d[2*j+1] = bf16(x[j]), bf16(y[j])
		}
	}
}

func interleaveInGo(dst unsafe.Pointer, half, step int, a, b unsafe.Pointer, offsets *int, n int) {
	for i, offset := range unsafe.Slice(offsets, n) {
		x, y := at[uint16](a, offset, 2*lanes), at[uint16](b, offset, 2*lanes)
		for j := range 2 * lanes {
			d := at[uint16](dst, i*step+j%2*half+j/2*4, 2)
			d[0], d[1] = x[j], y[j]
		}
	}
}

func gatherInGo(dst unsafe.Pointer, row int, rows *unsafe.Pointer, offsets *int, n, steps int) {
	for r, begin := range unsafe.Slice(rows, n) {
		for s, offset := range unsafe.Slice(offsets, steps) {
			copy(at[byte](dst, r*row+s*rowBytes, rowBytes), at[byte](begin, offset, rowBytes))
		}
	}
}

func columnsInGo(dst, src *float32, step, taps int) {
	for r := range lanes {
		row := unsafe.Slice(src, (lanes-1)*step+taps)[r*step:]
		for t := range taps {
			unsafe.Slice(dst, lanes*lanes)[t*lanes+r] = row[t]
		}
	}
}

func rowsInGo(dst *float32, step int, src *float32, taps int) {
	for r := range lanes {
		row := unsafe.Slice(dst, (lanes-1)*step+taps)[r*step:]
		for t := range taps {
			row[t] = unsafe.Slice(src, lanes*lanes)[t*lanes+r]
		}
	}
}
