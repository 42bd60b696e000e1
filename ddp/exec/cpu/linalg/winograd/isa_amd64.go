//go:build !noasm

package winograd

import "ebtrain/ddp/exec/cpu/linalg/micro"

// isas are the instruction sets of this CPU that have transforms, best first.
func isas() (list []isa) {
	for _, k := range micro.All() {
		switch k.Name {
		case "AVX-512":
			list = append(list, isa{
				kernel:     k,
				six:        loops{input6AVX512, output6AVX512, spread6AVX512, filter6AVX512, gather6AVX512},
				five:       loops{input5AVX512, output5AVX512, spread5AVX512, filter5AVX512, gather5AVX512},
				filterCost: 22,
				toColumns:  toColumnsAVX512,
				toRows:     toRowsAVX512,
				int16s:     newInt16s(),
			})
		case "AVX2":
			list = append(list, isa{
				kernel:     k,
				six:        loops{input6AVX2, output6AVX2, spread6AVX2, filter6AVX2, gather6AVX2},
				five:       loops{input5AVX2, output5AVX2, spread5AVX2, filter5AVX2, gather5AVX2},
				filterCost: 16,
				toColumns:  toColumnsAVX2,
				toRows:     toRowsAVX2,
			})
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
func input6AVX512(p *pass)

//go:noescape
func output6AVX512(p *pass)

//go:noescape
func spread6AVX512(p *pass)

//go:noescape
func filter6AVX512(p *pass)

//go:noescape
func gather6AVX512(p *pass)

//go:noescape
func input5AVX512(p *pass)

//go:noescape
func output5AVX512(p *pass)

//go:noescape
func spread5AVX512(p *pass)

//go:noescape
func filter5AVX512(p *pass)

//go:noescape
func gather5AVX512(p *pass)

//go:noescape
func toColumnsAVX512(dst, src *float32, step, taps int)

//go:noescape
func toRowsAVX512(dst *float32, step int, src *float32, taps int)

//go:noescape
func input6AVX2(p *pass)

//go:noescape
func output6AVX2(p *pass)

//go:noescape
func spread6AVX2(p *pass)

//go:noescape
func filter6AVX2(p *pass)

//go:noescape
func gather6AVX2(p *pass)

//go:noescape
func input5AVX2(p *pass)

//go:noescape
func output5AVX2(p *pass)

//go:noescape
func spread5AVX2(p *pass)

//go:noescape
func filter5AVX2(p *pass)

//go:noescape
func gather5AVX2(p *pass)

//go:noescape
func toColumnsAVX2(dst, src *float32, step, taps int)

//go:noescape
func toRowsAVX2(dst *float32, step int, src *float32, taps int)

//go:noescape
func prefetch(p uintptr, rows, cols, down, across, bytes int)
