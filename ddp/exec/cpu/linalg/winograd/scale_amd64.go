//go:build !noasm

package winograd

// scaleConstants are what the assembly needs of maxNorm and minSquares.
var scaleConstants = [...]float32{maxNorm, minSquares, 1. / maxNorm} //nolint:unused // the assembly reads them

//go:noescape
func scaleRows(p *rowScaling)

// scaleColumns scales 32 columns of an even number of rows; dst may be src.
// Steps are in bytes.
//
//go:noescape
func scaleColumns(dst *uint32, dstStep int, src *float32, srcStep int, scales *float32, rows int)
