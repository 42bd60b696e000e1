package native

import (
	"slices"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/micro"
)

// columns is the operand B as it lies in memory: row k of B is channel c of
// tap t, k = t·channels + c, and
//
//	B[k, n] = data[base + taps[t] + c*channelStep + n*columnStep]
type columns struct {
	base                    int
	taps                    []int
	channels                int
	channelStep, columnStep int
}

// lie says whether so many columns may be read where they lie, rows of B being rows of
// memory.
func (v *columns) lie(mk *micro.Kernel, cols int) bool {
	return v.columnStep == 1 && len(v.taps) == 1 && (mk.Masks || cols == mk.NR || cols == mk.Narrow)
}

// inPlace are columns n … n+cols-1 where they lie, if they may be read there, and how far
// apart rows are.
func (v *columns) inPlace(mk *micro.Kernel, data []float32, n, cols int) (b []float32, step int, ok bool) {
	if !v.lie(mk, cols) {
		return nil, 0, false
	}
	return data[v.base+v.taps[0]+n:], v.channelStep, true
}

// pack writes columns n … n+cols-1 of all of B into a panel of rows of nr,
// the columns that are missing as zeros.
func (v *columns) pack(turn *transposer, dst, data []float32, n, cols, nr int) {
	if len(v.taps) == 0 {
		return
	}
	if cols < nr {
		clear(dst)
	}
	data = data[v.base+n*v.columnStep:]
	switch {
	case v.columnStep == 1:
		v.packRows(dst, data, cols, nr)
	case len(v.taps) == 1 && v.channelStep == 1:
		turn.run(dst, nr, data[v.taps[0]:], v.columnStep, cols, v.channels)
	default:
		v.packTaps(turn, dst, data, cols, nr)
	}
}

func (v *columns) packRows(dst, data []float32, cols, nr int) {
	k := 0
	for _, tap := range v.taps {
		for c := range v.channels {
			copy(dst[k*nr:k*nr+cols], data[tap+c*v.channelStep:])
			k++
		}
	}
}

// packTaps takes all taps of a channel at once, which are neighbours in memory, of 16
// columns.
func (v *columns) packTaps(turn *transposer, dst, data []float32, cols, nr int) {
	first, last := slices.Min(v.taps), slices.Max(v.taps)
	taps, j := last-first+1, 0
	if turn.min > 0 && taps >= turn.min && taps <= lanes {
		for ; j+lanes <= cols; j += lanes {
			for c := range v.channels {
				turn.columns(data[first+c*v.channelStep+j*v.columnStep:], v.columnStep, taps)
				for t, tap := range v.taps {
					*(*[lanes]float32)(dst[(t*v.channels+c)*nr+j:]) = *(*[lanes]float32)(turn.block[(tap-first)*lanes:])
				}
			}
		}
	}
	for ; j < cols; j++ {
		for c := range v.channels {
			for t, tap := range v.taps {
				dst[(t*v.channels+c)*nr+j] = data[tap+c*v.channelStep+j*v.columnStep]
			}
		}
	}
}

// matrixRows is A with rows of k contiguous floats. If direct, it is read where it lies.
type matrixRows struct {
	stride int
	direct bool
}

func (a matrixRows) place(ws *workspace, mk *micro.Kernel, data []float32, m, rows, k0, k1 int) {
	whole := (rows + mk.Step - 1) / mk.Step * mk.Step
	if a.direct && (m+whole-1)*a.stride+k1 <= len(data) {
		ws.tile.A, ws.tile.RS, ws.tile.KS = data[m*a.stride+k0:], a.stride, 1
		return
	}
	for r := range rows {
		copy(ws.a[r*rowStride:], data[(m+r)*a.stride+k0:(m+r)*a.stride+k1])
	}
	ws.tile.A, ws.tile.RS, ws.tile.KS = ws.a, rowStride, 1
}

// matrixColumns is A with columns of contiguous floats: A transposed. If direct, it is
// read where it lies.
type matrixColumns struct {
	base, stride int
	direct       bool
}

func (a matrixColumns) place(ws *workspace, mk *micro.Kernel, data []float32, m, rows, k0, k1 int) {
	whole, data := (rows+mk.Step-1)/mk.Step*mk.Step, data[a.base+m:]
	if a.direct && (k1-1)*a.stride+whole <= len(data) {
		ws.tile.A, ws.tile.RS, ws.tile.KS = data[k0*a.stride:], 1, a.stride
		return
	}
	ws.tile.A, ws.tile.RS, ws.tile.KS = ws.a, 1, whole
	k, from, to := k0, k0*a.stride, 0
	if whole == 12 { // all of the micro-tile, even if not all rows are wanted
		for ; k < k1 && from+12 <= len(data); k, from, to = k+1, from+a.stride, to+12 {
			*(*[12]float32)(ws.a[to:]) = *(*[12]float32)(data[from:])
		}
	}
	for ; k < k1; k, from, to = k+1, from+a.stride, to+whole {
		copy(ws.a[to:to+rows], data[from:])
	}
}

// flipPays: B is big, and would have to be transposed while it is packed for
// the few rows of A that use it.
func flipPays(p engine.MatMulProblem) bool {
	return p.TransB && !p.TransA && p.M <= 64 && p.M*(p.K+p.N) < p.N*p.K
}

// newFlipped is Zᵀ (N,M) = b (N,K) · Aᵀ (K,M).
func newFlipped(e *Engine, p engine.MatMulProblem) *products {
	k := newProducts(e, []product{{m: p.N, n: p.M, k: p.K,
		a: matrixRows{p.K, inPlacePays(&e.kernel, p.K, p.M)},
		b: columns{taps: []int{0}, channels: p.K, channelStep: 1, columnStep: p.K},
		c: grid{h: 1, w: p.N, col: p.M}}}, sizes{p.M * p.N, p.M * p.K, p.K * p.N, true})
	k.flipped = p.N
	k.scratch += p.M * p.N
	return k
}

// inPlacePays says whether A is better read where it lies than gathered, for C of n
// columns: where it is used little, and where its rows, or columns, do not compete for the
// same lines of the first cache.
func inPlacePays(mk *micro.Kernel, stride, n int) bool {
	return n <= 4*mk.NR || stride%aliasing != 0
}

func newMatMul(e *Engine, p engine.MatMulProblem) *products {
	if flipPays(p) {
		return newFlipped(e, p)
	}
	q := product{m: p.M, n: p.N, k: p.K,
		a: matrixRows{p.K, inPlacePays(&e.kernel, p.K, p.N)},
		b: columns{taps: []int{0}, channels: p.K, channelStep: p.N, columnStep: 1},
		c: grid{h: 1, w: p.M, col: p.N}}
	if p.TransA {
		q.a = matrixColumns{0, p.M, inPlacePays(&e.kernel, p.M, p.N)}
	}
	if p.TransB {
		q.b.channelStep, q.b.columnStep = 1, p.K
	}
	return newProducts(e, []product{q}, sizes{p.M * p.N, p.M * p.K, p.K * p.N, false})
}
