package sentence

import (
	"fmt"
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Where one word is always far likelier than all others, each that is drawn is that of loops
// over the words before it, from the state that the latent begins, up to the end or the last
// place.
func TestSamplesAreLikeliest(t *testing.T) {
	const n, length = 12, 7
	w := sizes(2)
	c := nn.NewContext(nn.Eval, 1)
	c.Scope("g", func() { w.Declare(c) })
	latent := chain.Var("latent", graph.T(graph.F32, n, w.Latent))
	plan, err := w.Sample("g", n, length, latent)
	if err != nil {
		t.Fatal(err)
	}
	r := rig{vars: ddptest.NewVars()}
	if err := nn.Initialise(r.vars, append(append(c.Variables(), plan.Vars...), latent), 3); err != nil {
		t.Fatal(err)
	}
	change := func(name string, to func(i int, x float64) float64) []float64 {
		typ, _ := r.vars.Type(name)
		x := r.weight(t, name)
		for i := range x {
			x[i] = to(i, x[i])
		}
		if err := r.vars.Set(name, ddptest.Tensor(typ, x)); err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, v := range c.Variables() {
		change(v.Name, func(_ int, x float64) float64 { return 20 * x })
	}
	change("g.out.weight", func(_ int, x float64) float64 { return 1e4 * x })
	change("g.out.bias", func(i int, x float64) float64 {
		if i == data.Padding || i == data.Begin { // which never come
			return -1e6
		}
		return 0
	})
	noise := ddptest.Noise(6, n*w.Latent)
	z := change(latent.Name, func(i int, _ float64) float64 { return 2 * noise[i] })
	for step := range plan.Stages[0].Times {
		if _, err := ddptest.Run(plan.Stages[0].Graph, r.vars, nil, ddptest.Values{"key": {3, float64(step), 0}}); err != nil {
			t.Fatal(err)
		}
	}
	text, seen, long := r.weight(t, plan.Out), map[string]bool{}, 0
	for i := range n {
		var sentence []int
		for _, v := range text[i*length : (i+1)*length] {
			if sentence = append(sentence, int(v)); v == data.End {
				break
			}
		}
		drawn := sentence
		if len(sentence) == length { // it was ended
			drawn = sentence[:length-1]
		}
		if _, told := r.byHand(t, w, drawn, z[i*w.Latent:(i+1)*w.Latent], [2][]float64{}); told != float64(len(drawn)-1) {
			t.Errorf("of %v %v words are the likeliest", sentence, told)
		}
		seen[fmt.Sprint(sentence)] = true
		if len(drawn) > 4 {
			long++
		}
	}
	if len(seen) < 3 || long == 0 {
		t.Errorf("%d different sentences, %d long ones: the test sees little", len(seen), long)
	}
}

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
