package sentence

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

const (
	batch  = 3
	length = 5
	least  = 0.3 // dropout of tests
)

// Three sentences, of which one fills the batch.
func inputs() ddptest.Values {
	return ddptest.Values{
		algo.InputTokens:  {1, 4, 5, 2, 0, 1, 6, 3, 4, 2, 1, 5, 2, 0, 0},
		algo.InputLengths: {4, 5, 3},
		"z":               ddptest.Noise(4, 2*batch),
		"key":             {9, 3, 0},
	}
}

func sizes(latent int) Writer {
	return Writer{Words: 7, Embed: 3, Hidden: 4, Latent: latent, Dropout: least}
}

// rig is the loss and its gradients, in float64, and the weights.
type rig struct {
	g    *graph.Graph
	vars exec.Vars
	ps   []nn.Param
}

func newRig(t *testing.T, w Writer, l int, dropout bool) rig {
	t.Helper()
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	b := Input(c, batch, l)
	var z graph.ID
	if w.Latent > 0 {
		z = c.Input("z", graph.T(graph.F64, batch, w.Latent))
	}
	var d Drop
	if dropout {
		d.Key = c.Input("key", graph.KeyType)
	}
	var nll graph.ID
	c.Scope("g", func() {
		nll = w.NLL(c, b, z, d)
		all, told := w.Told(c, b, z)
		c.Output("all", all)
		c.Output("told", told)
	})
	loss := c.Mean(nll)
	c.Output("nll", nll)
	c.Output("loss", loss)
	c.Output("counts", b.Counts(c))
	r := rig{ps: c.Params("g")}
	for i, g := range c.Grad(loss, nn.IDs(r.ps)...) {
		c.Output(r.ps[i].Name, g)
	}
	var err error
	if r.g, err = c.Commit(); err != nil {
		t.Fatal(err)
	}
	r.vars = ddptest.NewVars()
	if err := nn.Initialise(r.vars, c.Variables(), 3); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r rig) run(t *testing.T, in ddptest.Values) ddptest.Values {
	t.Helper()
	mine := ddptest.Values{}
	for _, n := range r.g.Nodes() {
		if leaf, ok := n.Op.(graph.Leaf); ok && leaf.Kind == graph.Input {
			mine[leaf.Name] = in[leaf.Name]
		}
	}
	out, err := ddptest.Run(r.g, r.vars, nil, mine)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r rig) weight(t *testing.T, name string) []float64 {
	t.Helper()
	x, err := r.vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// byHand is −log p of one sentence in loops, as PyTorch's nn.LSTM and
// F.cross_entropy compute it, and how many of its words are the likeliest. kept are the
// factors of dropout on embeddings and on outputs, (steps, width); nil leaves out nothing.
func (r rig) byHand(t *testing.T, w Writer, sentence []int, z []float64, kept [2][]float64) (nll, told float64) {
	t.Helper()
	of := func(name string) []float64 { return r.weight(t, "g."+name) }
	words, in, state, bias := of("embedding.weight"), of("lstm.weight_ih"), of("lstm.weight_hh"), of("lstm.bias")
	out, outBias := of("out.weight"), of("out.bias")
	h, cell := make([]float64, w.Hidden), make([]float64, w.Hidden)
	if w.Latent > 0 {
		first, firstBias := of("first.weight"), of("first.bias")
		for i := range h {
			h[i] = firstBias[i]
			for j, v := range z {
				h[i] += first[i*w.Latent+j] * v
			}
		}
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for at := range len(sentence) - 1 {
		x := append(part(words[sentence[at]*w.Embed:(sentence[at]+1)*w.Embed], kept[0], at), z...)
		gates := slices.Clone(bias)
		for k := range gates {
			for j, v := range x {
				gates[k] += in[k*len(x)+j] * v
			}
			for j, v := range h {
				gates[k] += state[k*w.Hidden+j] * v
			}
		}
		for i := range h {
			n := w.Hidden
			cell[i] = sigmoid(gates[n+i])*cell[i] + sigmoid(gates[i])*math.Tanh(gates[2*n+i])
			h[i] = sigmoid(gates[3*n+i]) * math.Tanh(cell[i])
		}
		seen := part(h, kept[1], at)
		sum, target, most, likeliest := 0.0, 0.0, math.Inf(-1), -1
		for v := range w.Words {
			logit := outBias[v]
			for j, x := range seen {
				logit += out[v*w.Hidden+j] * x
			}
			sum += math.Exp(logit)
			if logit > most {
				most, likeliest = logit, v
			}
			if v == sentence[at+1] {
				target = logit
			}
		}
		nll += math.Log(sum) - target
		if likeliest == sentence[at+1] {
			told++
		}
	}
	return nll, told
}

// part is what dropout keeps of x at a step.
func part(x, kept []float64, at int) []float64 {
	out := slices.Clone(x)
	for i := range out {
		if kept != nil {
			out[i] *= kept[at*len(x)+i]
		}
	}
	return out
}

// The loss with dropout is that of loops which leave out the same of embeddings and of
// the LSTM's outputs, each by draws of its own; the state that goes on is whole.
func TestDropoutByHand(t *testing.T) {
	w, in := sizes(2), inputs()
	r := newRig(t, w, length, true)
	out := r.run(t, in)
	for i := range batch {
		var kept [2][]float64
		for use, width := range []int{w.Embed, w.Hidden} {
			kept[use] = make([]float64, (length-1)*width)
			philox.Name{Seed: 9, Purpose: philox.Dropout, Sub: uint16(use), Step: 3, Sample: uint32(i)}.Uniform(kept[use])
			for k, u := range kept[use] {
				if kept[use][k] = 0; u > least {
					kept[use][k] = 1 / (1 - least)
				}
			}
		}
		want, _ := r.byHand(t, w, words(in, i), in["z"][2*i:2*i+2], kept)
		if got := out["nll"][i]; !(math.Abs(got-want) <= 1e-12) || out["all"][i] == got {
			t.Errorf("sentence %d: %v, by hand %v, and %v of the whole", i, got, want, out["all"][i])
		}
	}
}

// words are the tokens of sentence i.
func words(in ddptest.Values, i int) (sentence []int) {
	for _, v := range in[algo.InputTokens][i*length : i*length+int(in[algo.InputLengths][i])] {
		sentence = append(sentence, int(v))
	}
	return sentence
}

// The loss and what is told are those of loops, with a latent and without; padding is no
// part of them.
func TestLossByHand(t *testing.T) {
	hits := 0.0
	for _, latent := range []int{0, 2} {
		w, in := sizes(latent), inputs()
		r := newRig(t, w, length, false)
		out := r.run(t, in)
		for i := range batch {
			n := int(in[algo.InputLengths][i])
			want, told := r.byHand(t, w, words(in, i), in["z"][i*latent:(i+1)*latent], [2][]float64{})
			if got := out["nll"][i]; !(math.Abs(got-want) <= 1e-12) || out["all"][i] != got {
				t.Errorf("latent %d, sentence %d: %v and %v, by hand %v", latent, i, got, out["all"][i], want)
			}
			if got := out["told"][i]; got != told {
				t.Errorf("latent %d, sentence %d: %v words are told, by hand %v", latent, i, got, told)
			}
			hits += told
			if out["counts"][i] != float64(n-1) {
				t.Errorf("sentence %d: %v words of a sentence of %d tokens", i, out["counts"][i], n)
			}
		}
	}
	if hits == 0 || hits == 2*(3+4+2) {
		t.Errorf("%v words of all are told: the test sees nothing", hits)
	}
}

// Neither what stands at padding, nor how much of it there is, changes the loss or a
// gradient; an empty slot has no loss.
func TestPaddingNeverCounts(t *testing.T) {
	in := inputs()
	want := newRig(t, sizes(2), length, false).run(t, in)
	other := inputs()
	other[algo.InputTokens][4], other[algo.InputTokens][13] = 6, 5
	longer := inputs()
	longer[algo.InputTokens] = nil
	for i := range batch {
		longer[algo.InputTokens] = append(append(longer[algo.InputTokens], in[algo.InputTokens][i*length:(i+1)*length]...), 0, 0)
	}
	for name, got := range map[string]ddptest.Values{
		"other tokens": newRig(t, sizes(2), length, false).run(t, other), "more": newRig(t, sizes(2), length+2, false).run(t, longer),
	} {
		for key, values := range want {
			if err := ddptest.Near(got[key], values, 1e-13); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
			}
		}
	}
	empty := inputs()
	empty[algo.InputLengths][1] = 0
	if got := newRig(t, sizes(2), length, false).run(t, empty); got["nll"][1] != 0 || got["counts"][1] != 0 || got["nll"][0] != want["nll"][0] {
		t.Errorf("an empty slot: losses %v, counts %v", got["nll"], got["counts"])
	}
}

// Gradients in all weights against central differences, with dropout and a latent.
func TestGradients(t *testing.T) {
	const h = 1e-5
	r, in := newRig(t, sizes(2), length, true), inputs()
	out := r.run(t, in)
	for i, p := range r.ps {
		base := r.weight(t, p.Name)
		direction := ddptest.Noise(uint32(i+10), len(base))
		ty, _ := r.vars.Type(p.Name)
		at := func(step float64) float64 {
			moved := slices.Clone(base)
			for j, d := range direction {
				moved[j] += step * d
			}
			if err := r.vars.Set(p.Name, ddptest.Tensor(ty, moved)); err != nil {
				t.Fatal(err)
			}
			return r.run(t, in)["loss"][0]
		}
		want := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
		at(0)
		got := 0.0
		for j, d := range direction {
			got += d * out[p.Name][j]
		}
		if !(math.Abs(got-want) <= 1e-8*(1+math.Abs(want))) || want == 0 {
			t.Errorf("%s: slope %v, finite differences give %v", p.Name, got, want)
		}
	}
	if len(r.ps) != 8 {
		t.Errorf("%d weights, want 8", len(r.ps))
	}
}

// Dropout leaves out its share, scales the rest, and belongs to the place in the
// global batch: ranks draw what one rank would.
func TestDropout(t *testing.T) {
	const n, width = 6, 50
	draw := func(n, first int) []float64 {
		c := nn.NewContext(nn.Train, 1)
		b := Batch{n: n, l: 4}
		key := c.Input("key", graph.KeyType)
		w := Writer{Dropout: least}
		c.Output("x", w.drop(c, b, Drop{Key: key, Sub: 6}, 1, c.Ones(graph.T(graph.F32, 3*n, width)), width))
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, ddptest.NewVars(), nil, ddptest.Values{"key": {1, 2, float64(first)}})
		if err != nil {
			t.Fatal(err)
		}
		return out["x"]
	}
	all := draw(n, 0)
	kept := 0
	for _, v := range all {
		switch {
		case v == 0:
		case math.Abs(v-1/(1-least)) < 1e-6:
			kept++
		default:
			t.Fatalf("a value of %v", v)
		}
	}
	if share := float64(kept) / float64(len(all)); !(math.Abs(share-(1-least)) <= 0.05) {
		t.Errorf("%v of the values are kept", share)
	}
	part := draw(2, 4)
	for step := range 3 {
		if !slices.Equal(part[step*2*width:(step+1)*2*width], all[(step*n+4)*width:(step*n+6)*width]) {
			t.Errorf("step %d of samples 4 and 5 is not that of all", step)
		}
	}
}

// A vocabulary's worth of logits is there once, and the gradient takes its place.
func TestLogitsAreNotKeptTwice(t *testing.T) {
	const n, l, words = 8, 9, 4000
	w := Writer{Words: words, Embed: 8, Hidden: 8}
	c := nn.NewContext(nn.Train, 1)
	loss := c.Mean(w.NLL(c, Input(c, n, l), 0, Drop{}))
	ps := []graph.ID{w.weights(c).bias, w.weights(c).words}
	for i, g := range c.Grad(loss, ps...) {
		c.Output([]string{"bias", "words"}[i], g)
	}
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backend.Close() }()
	vars := backend.NewVars()
	if err := nn.Initialise(vars, c.Variables(), 1); err != nil {
		t.Fatal(err)
	}
	p, err := backend.Compile(g, exec.Options{Name: "loss", Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	logits := int64(4 * words * n * (l - 1))
	if peak := p.Stats().PeakBytes; peak > 3*logits/2 {
		t.Errorf("%d bytes at once, %.1f times the logits", peak, float64(peak)/float64(logits))
	} else {
		t.Logf("%.2f times the logits", float64(peak)/float64(logits))
	}
}
