//go:build !noasm

package winograd

import "golang.org/x/sys/cpu"

// available says whether this CPU can run the loops.
func available() bool { return cpu.X86.HasAVX512F }

var (
	loops6 = loops{input6, output6, spread6, filter6, gather6}
	loops5 = loops{input5, output5, spread5, filter5, gather5}
)

//go:noescape
func input6(p *pass)

//go:noescape
func output6(p *pass)

//go:noescape
func spread6(p *pass)

//go:noescape
func filter6(p *pass)

//go:noescape
func gather6(p *pass)

//go:noescape
func input5(p *pass)

//go:noescape
func output5(p *pass)

//go:noescape
func spread5(p *pass)

//go:noescape
func filter5(p *pass)

//go:noescape
func gather5(p *pass)

//go:noescape
func toColumns(dst, src *float32, step int, mask uint16)

//go:noescape
func toRows(dst *float32, step int, src *float32, mask uint16)
