package native

import "ebtrain/ddp/exec/cpu/linalg/engine"

// columns is the operand B as it lies in memory: row k of B is channel c of
// tap t, k = t·channels + c, and
//
//	B[k, n] = data[base + taps[t] + c*channelStep + n*columnStep]
//
// or, if order is given, with order[n] instead of n*columnStep.
type columns struct {
	base                    int
	taps                    []int
	channels                int
	channelStep, columnStep int
	order                   []int
}

// pack writes columns n … n+cols-1 of all of B into a panel of rows of nr,
// the columns that are missing as zeros.
func (v columns) pack(dst, data []float32, n, cols, nr int) {
	if len(v.taps) == 0 {
		return
	}
	if cols < nr {
		clear(dst)
	}
	if v.order != nil {
		v.packOrdered(dst, data, n, cols, nr)
		return
	}
	data = data[v.base+n*v.columnStep:]
	if v.columnStep == 1 {
		v.packRows(dst, data, cols, nr)
		return
	}
	j := 0
	for ; j+8 <= cols; j += 8 { // eight streams at a time: as many as the cache has ways
		v.pack8(dst[j:], data[j*v.columnStep:], nr)
	}
	for ; j < cols; j++ {
		v.pack1(dst[j:], data[j*v.columnStep:], nr)
	}
}

func (v columns) packOrdered(dst, data []float32, n, cols, nr int) {
	k := 0
	for _, tap := range v.taps {
		for c := range v.channels {
			src := data[v.base+tap+c*v.channelStep:]
			for j, i := range v.order[n : n+cols] {
				dst[k*nr+j] = src[i]
			}
			k++
		}
	}
}

func (v columns) packRows(dst, data []float32, cols, nr int) {
	k := 0
	for _, tap := range v.taps {
		for c := range v.channels {
			copy(dst[k*nr:k*nr+cols], data[tap+c*v.channelStep:])
			k++
		}
	}
}

func (v columns) pack8(dst, data []float32, nr int) {
	s := v.columnStep
	if len(v.taps) == 1 && v.channelStep == 1 {
		pack8Rows(dst, data[v.taps[0]:], v.channels, s, nr)
		return
	}
	for c := range v.channels {
		for t, tap := range v.taps {
			d := (*[8]float32)(dst[(t*v.channels+c)*nr:])
			src := data[tap+c*v.channelStep:]
			_ = src[7*s]
			d[0], d[1], d[2], d[3] = src[0], src[s], src[2*s], src[3*s]
			d[4], d[5], d[6], d[7] = src[4*s], src[5*s], src[6*s], src[7*s]
		}
	}
}

// pack8Rows transposes eight rows of n floats, s apart.
func pack8Rows(dst, data []float32, n, s, nr int) {
	row := func(i int) []float32 { return data[i*s:][:n] }
	s0, s1, s2, s3, s4, s5, s6, s7 := row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)
	for c := range n {
		d := (*[8]float32)(dst[c*nr:])
		d[0], d[1], d[2], d[3] = s0[c], s1[c], s2[c], s3[c]
		d[4], d[5], d[6], d[7] = s4[c], s5[c], s6[c], s7[c]
	}
}

func (v columns) pack1(dst, data []float32, nr int) {
	for c := range v.channels {
		for t, tap := range v.taps {
			dst[(t*v.channels+c)*nr] = data[tap+c*v.channelStep]
		}
	}
}

// matrixRows is A with rows of k contiguous floats.
type matrixRows struct{ stride int }

func (a matrixRows) fill(dst, data []float32, m, rows, k0, k1 int) (rs, ks int) {
	for r := range rows {
		copy(dst[r*rowStride:], data[(m+r)*a.stride+k0:(m+r)*a.stride+k1])
	}
	return rowStride, 1
}

// matrixColumns is A with columns of contiguous floats: A transposed.
type matrixColumns struct {
	base, stride int
	mr           int
}

// reaches says whether data holds a whole micro-tile from row m on, up to column k.
func (a matrixColumns) reaches(data []float32, m, k int) bool {
	return a.base+(k-1)*a.stride+m+a.mr <= len(data)
}

func (a matrixColumns) fill(dst, data []float32, m, rows, k0, k1 int) (rs, ks int) {
	k, from, to := k0, a.base+k0*a.stride+m, 0
	if a.mr == 12 { // a whole micro-tile, even if not all rows are wanted
		for ; k < k1 && from+12 <= len(data); k, from, to = k+1, from+a.stride, to+12 {
			*(*[12]float32)(dst[to:]) = *(*[12]float32)(data[from:])
		}
	}
	for ; k < k1; k, from, to = k+1, from+a.stride, to+a.mr {
		copy(dst[to:to+rows], data[from:])
	}
	return 1, a.mr
}

// flipPays: B is big, and would have to be transposed while it is packed for
// the few rows of A that use it.
func flipPays(p engine.MatMulProblem) bool { return p.TransB && !p.TransA && p.M <= 64 && p.N >= 64 }

// newFlipped is Zᵀ (N,M) = b (N,K) · Aᵀ (K,M).
func newFlipped(e *Engine, p engine.MatMulProblem) *products {
	k := newProducts(e, []product{{m: p.N, n: p.M, k: p.K,
		a: matrixRows{p.K},
		b: columns{taps: []int{0}, channels: p.K, channelStep: 1, columnStep: p.K},
		c: grid{h: 1, w: p.N, col: p.M}}}, sizes{p.M * p.N, p.M * p.K, p.K * p.N, true})
	k.flipped = p.N
	k.scratch += p.M * p.N
	return k
}

func newMatMul(e *Engine, p engine.MatMulProblem) *products {
	if flipPays(p) {
		return newFlipped(e, p)
	}
	q := product{m: p.M, n: p.N, k: p.K,
		a: matrixRows{p.K},
		b: columns{taps: []int{0}, channels: p.K, channelStep: p.N, columnStep: 1},
		c: grid{h: 1, w: p.M, col: p.N}}
	if p.TransA {
		q.a = matrixColumns{0, p.M, e.kernel.MR}
	}
	if p.TransB {
		q.b.channelStep, q.b.columnStep = 1, p.K
	}
	return newProducts(e, []product{q}, sizes{p.M * p.N, p.M * p.K, p.K * p.N, false})
}
