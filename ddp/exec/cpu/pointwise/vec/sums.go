package vec

import "ebtrain/ddp/exec/cpu/array"

// Sums are the sums of a block: all of it, or its columns, which are added to
// acc: x is rows of the length of acc.
type Sums[T, A array.Number] struct {
	All     func(x []T) A
	Columns func(acc []A, x []T)
}

func sumsOf[T, A array.Number]() Sums[T, A] { return Sums[T, A]{sum[T, A], sumColumns[T, A]} }
func squaresOf[T, A array.Number]() Sums[T, A] {
	return Sums[T, A]{sumSquares[T, A], sumSquareColumns[T, A]}
}

// sumColumns adds each row of x, of the length of acc, to acc.
func sumColumns[T, A array.Number](acc []A, x []T) {
	for len(x) >= len(acc) && len(x) > 0 {
		row := x[:len(acc)]
		for i, v := range row {
			acc[i] += A(v)
		}
		x = x[len(acc):]
	}
}

// sumSquareColumns is sumColumns of squares.
func sumSquareColumns[T, A array.Number](acc []A, x []T) {
	for len(x) >= len(acc) && len(x) > 0 {
		row := x[:len(acc)]
		for i, v := range row {
			acc[i] += A(v) * A(v)
		}
		x = x[len(acc):]
	}
}

// sumSquares adds squares, in one chain.
func sumSquares[T, A array.Number](x []T) (s A) {
	for _, v := range x {
		s += A(v) * A(v)
	}
	return s
}

// sum adds in four interleaved chains.
func sum[T, A array.Number](x []T) A {
	var s0, s1, s2, s3 A
	for len(x) >= 4 {
		s0 += A(x[0])
		s1 += A(x[1])
		s2 += A(x[2])
		s3 += A(x[3])
		x = x[4:]
	}
	for _, v := range x {
		s0 += A(v)
	}
	return s0 + s1 + (s2 + s3)
}
