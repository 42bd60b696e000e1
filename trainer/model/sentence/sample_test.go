package sentence

import (
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// In float32 one uniform draw in 2²⁴ is 1, whose Gumbel noise would be infinite. Not
// even there padding or a begin is drawn, nor a word of no probability.
func TestLargestDraw(t *testing.T) {
	const rows, words, impossible = 8, 7, 5
	for _, at := range []struct{ step, row, token int }{
		{200571, 7, data.Padding}, {1727179, 1, data.Begin}, {12976937, 7, impossible},
	} {
		name := philox.Name{Seed: 1, Purpose: philox.Chain, Step: uint32(at.step), Sample: uint32(at.row)}
		if float32(philox.Float64(name.Uint32(at.token))) != 1 {
			t.Fatalf("step %d: the draw of token %d in row %d is not the largest", at.step, at.token, at.row)
		}
		c := nn.NewContext(nn.Eval, 1)
		logits := make([]float64, rows*words)
		for i := range rows {
			logits[i*words+impossible] = -1e4
		}
		c.Output("drawn", draw(c, c.Input("key", graph.KeyType), c.Input("logits", graph.T(graph.F32, rows, words))))
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, ddptest.NewVars(), nil, ddptest.Values{"key": {1, float64(at.step), 0}, "logits": logits})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range out["drawn"] {
			if v == data.Padding || v == data.Begin || v == impossible {
				t.Errorf("step %d: token %v was drawn in row %d", at.step, v, i)
			}
		}
	}
}
