package native

import (
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/linalg/transpose"
)

// lanes is the extent of the blocks that package transpose turns.
const lanes = 16

// transposer turns rows into columns, by blocks in registers where the processor has
// kernels for that, which want rows of at least min floats.
type transposer struct {
	transpose.Kernels
	min   int
	block []float32
}

func newTransposer(mk micro.Kernel) transposer {
	kernels, min := transpositions(mk)
	return transposer{kernels, min, micro.Aligned(lanes * lanes)}
}

// run is dst[c*down+r] = src[r*step+c] for r < rows and c < cols.
func (t *transposer) run(dst []float32, down int, src []float32, step, rows, cols int) {
	for r := 0; r < rows; r += lanes {
		n := min(lanes, rows-r)
		for c := 0; c < cols; c += lanes {
			t.part(dst[c*down+r:], down, src[r*step+c:], step, n, min(lanes, cols-c))
		}
	}
}

// part is run for up to 16 rows and columns.
func (t *transposer) part(dst []float32, down int, src []float32, step, rows, cols int) {
	switch {
	case t.Strided != nil && rows == lanes && cols == lanes:
		_, _ = src[(lanes-1)*step+lanes-1], dst[(lanes-1)*down+lanes-1]
		t.Strided(&dst[0], down, &src[0], step)
	case t.min > 0 && rows == lanes && cols >= t.min:
		t.columns(src, step, cols)
		for c := range cols {
			*(*[lanes]float32)(dst[c*down:]) = *(*[lanes]float32)(t.block[c*lanes:])
		}
	case t.min > 0 && cols == lanes && rows >= t.min:
		for r := range rows {
			*(*[lanes]float32)(t.block[r*lanes:]) = *(*[lanes]float32)(src[r*step:])
		}
		_ = dst[(lanes-1)*down+rows-1]
		t.Rows(&dst[0], down, &t.block[0], rows)
	default:
		for r := range rows {
			d := dst[r:]
			for c, v := range src[r*step : r*step+cols] {
				d[c*down] = v
			}
		}
	}
}

// columns turns 16 rows of src into t.block, column c into floats 16c … 16c+15.
func (t *transposer) columns(src []float32, step, cols int) {
	_ = src[(lanes-1)*step+cols-1]
	t.Columns(&t.block[0], &src[0], step, cols)
}
