package inception

import (
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Names of the matrices that enlarge rows and columns.
const (
	rowsName    = "resize.rows"
	columnsName = "resize.columns"
)

// Resize makes pictures (n, 3, H, W) of 299×299: one product for the columns, one for
// the rows.
func Resize(c *nn.Context, x graph.ID) graph.ID {
	s := c.Shape(x)
	if c.Err() != nil {
		return x
	}
	batch, h, w := s.At(0), s.At(2), s.At(3)
	if h == side && w == side {
		return x
	}
	var rows, columns graph.ID
	c.Scope("resize", func() {
		rows = c.Weight("rows", graph.D(side, h), nn.FanIn(h))
		columns = c.Weight("columns", graph.D(side, w), nn.FanIn(w))
	})
	y := c.MatMul(c.Reshape(x, graph.D(batch*channels*h, w)), columns, false, true)
	y = c.Transpose(c.Reshape(y, graph.D(batch*channels, h, side)), 0, 2, 1)
	y = c.MatMul(c.Reshape(y, graph.D(batch*channels*side, h)), rows, false, true)
	return c.Reshape(c.Transpose(c.Reshape(y, graph.D(batch*channels, side, side)), 0, 2, 1), graph.D(batch, channels, side, side))
}

// interpolation is the matrix (299, from) of bilinear interpolation along an axis:
// place i lies at (i + ½)·from/299 − ½, and takes from its two neighbours, by their
// nearness. There is no filter: a larger picture loses what lies between.
func interpolation(from int) *exec.Tensor {
	t := exec.NewTensor(graph.T(graph.F32, side, from))
	for i := range side {
		at := max(0, (float64(i)+0.5)*float64(from)/side-0.5)
		low := min(int(math.Floor(at)), from-1)
		share := at - float64(low)
		t.F32()[i*from+low] += float32(1 - share)
		t.F32()[i*from+min(low+1, from-1)] += float32(share)
	}
	return t
}
