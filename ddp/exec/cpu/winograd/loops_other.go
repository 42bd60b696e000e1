//go:build !amd64 || noasm

package winograd

// available says whether this CPU can run the loops.
func available() bool { return false }

var loops6, loops5 loops

func toColumns(dst, src *float32, step int, mask uint16) { panic("winograd: no AVX-512") }

func toRows(dst *float32, step int, src *float32, mask uint16) { panic("winograd: no AVX-512") }
