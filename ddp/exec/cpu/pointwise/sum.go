package pointwise

import (
	"math"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/pointwise/vec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// sum is a reduction at the end of a fused group. Each part of the work
// has results of its own, which are combined in order.
type sum[T, A array.Number] struct {
	reg     int
	max     bool
	mean    int     // of a sum of squares around the mean: 1 + the number of the plain sum, else 0
	n       float64 // elements in a result
	summing summing
	add     vec.Sums[T, A]
	larger  vec.Binary[T] // of two arrays
	side    [][]T         // of a maximum, by part: maxima side by side
	acc     plan.Access
	part    [][]A    // by part of the work
	cols    [][2]int // by part: the results that it adds to
	out     unsafe.Pointer
	write   array.Writer[A]
}

// partialBytes is the scratch memory of the partial results.
func partialBytes(size, parts int) int {
	return parts * ((size*8 + plan.Align - 1) / plan.Align * plan.Align)
}

// resultLen is the number of elements of a reduction's result.
func resultLen(a plan.Access) int {
	n := 1
	for i, d := range a.Dims {
		if a.Strides[i] != 0 {
			n *= d
		}
	}
	return n
}

func newSum[T, A array.Number](r plan.Reduction, tab vec.Table[T, A], out unsafe.Pointer, d graph.DType, size, parts int, scratch unsafe.Pointer) sum[T, A] {
	s := sum[T, A]{reg: r.Reg, max: r.Fn == graph.ReduceMax, add: tab.Sums, larger: tab.Binary(graph.Max).VV, acc: r.Access, out: out, write: array.WriterOf[A](d)}
	if r.Centred {
		s.add = tab.Squares
	}
	step := partialBytes(size, 1)
	s.cols = make([][2]int, parts)
	for t := range parts {
		s.part = append(s.part, array.Span[A](unsafe.Add(scratch, t*step), size))
		if s.max {
			s.side = append(s.side, make([]T, abreast))
		}
	}
	return s
}

// reset prepares the partial result of part w, blocks lo … hi.
func (s *sum[T, A]) reset(w int, o order, lo, hi int) {
	s.cols[w] = [2]int{0, len(s.part[w])}
	if c := array.Period(s.acc); o.rows > 0 && c == o.cols {
		block := c * o.rows / o.blocks
		s.cols[w] = [2]int{lo / o.rows * block, (hi + o.rows - 1) / o.rows * block}
	}
	array.Fill(s.mine(w), s.none())
}

// none is the result of nothing.
func (s *sum[T, A]) none() A {
	if s.max {
		return lowest[A]()
	}
	return 0
}

// mine is the results that part w adds to.
func (s *sum[T, A]) mine(w int) []A { return s.part[w][s.cols[w][0]:s.cols[w][1]] }

func lowest[A array.Number]() A {
	var a A
	switch p := any(&a).(type) {
	case *float32:
		*p = float32(math.Inf(-1))
	case *float64:
		*p = math.Inf(-1)
	case *int64:
		*p = math.MinInt64
	}
	return a
}

// block combines the points at … of a block into the partial result of part w.
func (s *sum[T, A]) block(w, at int, x []T) {
	acc := s.part[w]
	if s.max {
		array.Runs(s.acc, at, len(x), func(i, off, n, stride int) {
			if stride == 0 {
				acc[off] = max(acc[off], A(s.most(w, x[i:i+n])))
				return
			}
			for j, v := range x[i : i+n] {
				acc[off+j] = max(acc[off+j], A(v))
			}
		})
		return
	}
	if p := array.Period(s.acc); p > 0 && at%p == 0 && len(x)%p == 0 {
		s.add.Columns(acc[:p], x)
		return
	}
	if k := len(s.acc.Dims) - 1; k >= 0 && len(x) <= s.acc.Dims[k]-at%s.acc.Dims[k] { // in one run
		off := s.acc.Offset(at)
		if s.acc.Strides[k] == 0 {
			acc[off] += s.add.All(x)
		} else {
			s.add.Columns(acc[off:off+len(x)], x)
		}
		return
	}
	array.Runs(s.acc, at, len(x), func(i, off, n, stride int) {
		if stride == 0 {
			acc[off] += s.add.All(x[i : i+n])
			return
		}
		s.add.Columns(acc[off:off+n], x[i:i+n])
	})
}

// abreast is the number of maxima that are kept side by side, a power of 2: one alone
// waits for itself at each element.
const abreast = 128

// most is the largest number of x, which is not empty.
func (s *sum[T, A]) most(w int, x []T) T {
	if len(x) >= 2*abreast {
		side, rest := s.side[w], x[abreast:]
		copy(side, x)
		for ; len(rest) >= abreast; rest = rest[abreast:] {
			s.larger(side, side, rest[:abreast])
		}
		s.larger(side, side, x[len(x)-abreast:]) // again some, which changes nothing
		for len(side) > 8 {
			half := len(side) / 2
			s.larger(side[:half], side[:half], side[half:])
			side = side[:half]
		}
		x = side
	}
	m := x[0]
	for _, v := range x[1:] {
		m = max(m, v)
	}
	return m
}

// centre turns the sum of squares x² into that of (x − m)², where m is the mean
// and plain holds the sums of x. Both are in float64, so what cancels leaves
// the digits of a float32 as long as |m| is below some 10⁴ standard deviations.
func (s *sum[T, A]) centre(plain *sum[T, A]) {
	for i, v := range plain.part[0] {
		s.part[0][i] = max(0, s.part[0][i]-A(float64(v)*float64(v)/s.n))
	}
}

// finish combines the partial results of all parts and writes the result.
func (s *sum[T, A]) finish(parts int, plain *sum[T, A]) {
	s.combine(parts)
	if plain != nil {
		s.centre(plain)
	}
	if s.out != nil {
		s.write(s.out, 0, s.part[0])
	}
}

// combine adds the partial results of all parts to the first.
func (s *sum[T, A]) combine(parts int) {
	acc := s.part[0]
	array.Fill(acc[s.cols[0][1]:], s.none()) // part 0 begins at 0
	for w := 1; w < parts; w++ {
		mine := s.mine(w)
		d := acc[s.cols[w][0]:][:len(mine)]
		for i, v := range mine {
			if s.max {
				d[i] = max(d[i], v)
			} else {
				d[i] += v
			}
		}
	}
}
