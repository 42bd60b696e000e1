//go:build !noasm

package vec

import "golang.org/x/sys/cpu"

//go:noescape
func sum16(x *float32, n int) float64

//go:noescape
func sumColumns16(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumColumns4(acc *float64, x *float32, rows, stride int)

//go:noescape
func sum64(x *float32, n int) float64

//go:noescape
func sumColumns64(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumColumns32(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumSquareColumns64(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumSquareColumns32(acc *float64, x *float32, rows, stride int)

//go:noescape
func addRow32(acc *float64, x *float32, n int)

// sumsFloat32 is the sums of float32 in float64.
func sumsFloat32() Sums[float32, float64] {
	if !cpu.X86.HasAVX2 {
		return sumsOf[float32, float64]()
	}
	return Sums[float32, float64]{sumFloat32, sumColumnsFloat32}
}

// squaresFloat32 is the sums of the squares of float32 in float64.
func squaresFloat32() Sums[float32, float64] {
	if !cpu.X86.HasAVX2 {
		return squaresOf[float32, float64]()
	}
	return Sums[float32, float64]{sumSquares[float32, float64], sumSquareColumnsFloat32}
}

// sumFloat32 is the sum of x, whatever its length.
func sumFloat32(x []float32) (s float64) {
	if n := len(x) &^ 63; cpu.X86.HasAVX512F && n > 0 {
		s = sum64(&x[0], n)
		x = x[n:]
	}
	if n := len(x) &^ 15; n > 0 {
		s += sum16(&x[0], n)
		x = x[n:]
	}
	return s + sum[float32, float64](x)
}

// sumColumnsFloat32 adds the rows of x, of the length of acc, to acc.
func sumColumnsFloat32(acc []float64, x []float32) {
	cols := len(acc)
	rows := len(x) / max(cols, 1)
	if rows == 0 {
		return
	}
	c := 0
	if cpu.X86.HasAVX512F && rows == 1 && cols >= 32 {
		c = cols &^ 31
		addRow32(&acc[0], &x[0], c)
	}
	for ; cpu.X86.HasAVX512F && c+64 <= cols; c += 64 {
		sumColumns64(&acc[c], &x[c], rows, cols)
	}
	for ; cpu.X86.HasAVX512F && c+32 <= cols; c += 32 {
		sumColumns32(&acc[c], &x[c], rows, cols)
	}
	for ; c+16 <= cols; c += 16 {
		sumColumns16(&acc[c], &x[c], rows, cols)
	}
	for ; c+4 <= cols; c += 4 {
		sumColumns4(&acc[c], &x[c], rows, cols)
	}
	for ; c < cols; c++ {
		for i := c; i < rows*cols; i += cols {
			acc[c] += float64(x[i])
		}
	}
}

// sumSquareColumnsFloat32 adds the squares of the rows of x, of the length of acc, to
// acc.
func sumSquareColumnsFloat32(acc []float64, x []float32) {
	cols := len(acc)
	rows := len(x) / max(cols, 1)
	if rows == 0 {
		return
	}
	c := 0
	for ; cpu.X86.HasAVX512F && c+64 <= cols; c += 64 {
		sumSquareColumns64(&acc[c], &x[c], rows, cols)
	}
	for ; cpu.X86.HasAVX512F && c+32 <= cols; c += 32 {
		sumSquareColumns32(&acc[c], &x[c], rows, cols)
	}
	for ; c < cols; c++ {
		for i := c; i < rows*cols; i += cols {
			acc[c] += float64(x[i]) * float64(x[i])
		}
	}
}
