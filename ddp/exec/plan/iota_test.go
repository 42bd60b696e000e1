package plan

import (
	"fmt"
	"testing"

	"ebtrain/ddp/graph"
)

// TestIotaIsALine: an index along an axis is kept once, and repeated by what reads it.
func TestIotaIsALine(t *testing.T) {
	for _, c := range []struct {
		shape graph.Shape
		axis  int
		line  graph.Shape
		read  string
	}{
		{graph.D(6, 5), 1, graph.D(1, 5), "<6*,5>"},
		{graph.D(6, 5), 0, graph.D(6, 1), "<6,5*>"},
		{graph.D(2, 3, 4), 1, graph.D(1, 3, 1), "<2*,3,4*>"},
		{graph.D(7), 0, graph.D(7), "<7>"},
		{graph.D(0, 5), 1, graph.D(1, 5), ""},
	} {
		t.Run(fmt.Sprint(c.shape, c.axis), func(t *testing.T) {
			var b graph.Builder
			ty := graph.T(graph.F32, c.shape.Slice()...)
			b.Output("y", b.Equal(b.Input("x", ty), b.Iota(ty, c.axis)))
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			p := compile(t, g, 1)
			line := -1
			for _, s := range p.Steps {
				switch op := s.Op.(type) {
				case graph.Iota:
					line = s.Out[0]
					if got := p.Values[line].Dims; got != c.line || op.Type.Shape != c.line {
						t.Errorf("the index is %v, of %v; want %v", got, op.Type.Shape, c.line)
					}
				case *Fused:
					for k, v := range s.In {
						if v == line && c.read != "" && op.Loads[k].String() != c.read {
							t.Errorf("it is read as %v, want %v", op.Loads[k], c.read)
						}
					}
				}
			}
			if line < 0 {
				t.Error("there is no index")
			}
		})
	}
}
