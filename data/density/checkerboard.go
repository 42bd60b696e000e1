package density

import (
	"fmt"

	"ebtrain/ddp/philox"
)

// Checkerboard is the uniform density on the cells of a board over the unit
// square whose column and row are both even or both odd: with two columns,
// [0,½]² and [½,1]² [ALGORITHMS.md §2.2]. Its entropy is the logarithm of the
// cells' area: −log 2 if Cols is even.
type Checkerboard struct {
	Cols int // columns and rows, 1 to 1024
}

// Validate implements Density.
func (c Checkerboard) Validate() error {
	if c.Cols < 1 || c.Cols > 1024 {
		return fmt.Errorf("cols is %d, expected 1 to 1024", c.Cols)
	}
	return nil
}

// Dim implements Density.
func (c Checkerboard) Dim() int { return 2 }

// String implements Density.
func (c Checkerboard) String() string { return fmt.Sprintf("checkerboard cols=%d", c.Cols) }

func (c Checkerboard) stream() uint16 { return checkerboardStream }

// draw takes three words: which cell, and where in it.
func (c Checkerboard) draw(n philox.Name, dst []float64) {
	w := n.Block(0)
	cells := (c.Cols*c.Cols + 1) / 2
	i := 2 * int(uint64(w[0])*uint64(cells)>>32) // of all cells, row by row, if Cols is odd
	row := i / c.Cols
	col := i % c.Cols
	if c.Cols%2 == 0 {
		col += row % 2
	}
	dst[0] = (float64(col) + philox.Float64(w[1])) / float64(c.Cols)
	dst[1] = (float64(row) + philox.Float64(w[2])) / float64(c.Cols)
}
