package cpu

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// model builds the graphs of the tests: convolutional nets with batch norm
// and spectral norm, and Adam. Its parameters are variables.
type model struct {
	b      *graph.Builder
	params []string
	types  map[string]graph.Type
	fill   map[string]float64 // standard deviation of the initial value; 0: ones
	sync   bool               // batch-norm statistics over all ranks
}

func newModel(sync bool) *model {
	return &model{b: &graph.Builder{}, types: map[string]graph.Type{}, fill: map[string]float64{}, sync: sync}
}

func (m *model) param(name string, std float64, dims ...int) graph.ID {
	if _, ok := m.types[name]; !ok {
		m.params = append(m.params, name)
	}
	return m.state(name, std, dims...)
}

func (m *model) state(name string, std float64, dims ...int) graph.ID {
	m.types[name], m.fill[name] = graph.T(graph.F32, dims...), std
	return m.b.Var(name, m.types[name])
}

// set gives a fresh set of variables the initial values.
func (m *model) set(v exec.Vars) error {
	i := uint32(0)
	for _, name := range sortedKeys(m.types) {
		t := exec.NewTensor(m.types[name])
		vals := make([]float64, len(t.F32()))
		philox.Name{Purpose: philox.Testing, Sample: i}.Normal(vals)
		i++
		for k := range vals {
			t.F32()[k] = float32(vals[k] * m.fill[name])
			if m.fill[name] == 0 {
				t.F32()[k] = 1
			}
			if m.fill[name] < 0 {
				t.F32()[k] = 0
			}
		}
		if err := v.Set(name, t); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) perChannel(v graph.ID, c int) graph.ID { return m.b.Reshape(v, graph.D(1, c, 1, 1)) }

// norm is batch norm with batch statistics.
func (m *model) norm(name string, x graph.ID) graph.ID {
	b, c := m.b, m.b.Shape(x).At(1)
	mean := b.MeanKeep(x, 0, 2, 3)
	if m.sync {
		mean = b.AllReduce(collective.Mean, name+" mean", mean)[0]
	}
	d := b.Sub(x, mean)
	vr := b.MeanKeep(b.Square(d), 0, 2, 3)
	if m.sync {
		vr = b.AllReduce(collective.Mean, name+" var", vr)[0]
	}
	inv := b.Recip(b.Sqrt(b.Shift(vr, 1e-5)))
	g, s := m.perChannel(m.param(name+".g", 0, c), c), m.perChannel(m.param(name+".b", -1, c), c)
	rm := m.state(name+".mean", -1, 1, c, 1, 1)
	m.assign(rm, b.Add(b.Scale(rm, 0.9), b.Scale(mean, 0.1)))
	return b.Add(b.Mul(b.Mul(d, inv), g), s)
}

// assign is Assign, the first time.
func (m *model) assign(v, x graph.ID) {
	name := m.b.Node(v).Op.(graph.Leaf).Name
	if key := name + " assigned"; m.fill[key] == 0 {
		m.fill[key] = 1
		m.b.Assign(v, x)
	}
}

// spectral is w over its largest singular value, by one power iteration.
func (m *model) spectral(name string, w graph.ID, iterate bool) graph.ID {
	b, s := m.b, m.b.Shape(w)
	rows, cols := s.At(0), s.Len()/s.At(0)
	mat := b.Reshape(w, graph.D(rows, cols))
	u := m.state(name+".u", 1, 1, rows)
	unit := func(x graph.ID) graph.ID {
		return b.Div(x, b.Shift(b.Sqrt(b.SumKeep(b.Square(x), 0, 1)), 1e-12))
	}
	v := unit(b.MatMul(u, mat, false, false))
	u2 := unit(b.MatMul(v, mat, false, true))
	if iterate {
		m.assign(u, u2)
	}
	sigma := b.Reshape(b.MatMul(b.MatMul(b.StopGrad(u2), mat, false, false), b.StopGrad(v), false, true), graph.D(1, 1, 1, 1))
	return b.Div(w, sigma)
}

// energy is the 32×32 energy net of base width c on images x.
func (m *model) energy(x graph.ID, c int) graph.ID {
	b := m.b
	in := b.Shape(x).At(1)
	for i, l := range []struct{ k, s, p, o int }{{3, 1, 1, c}, {4, 2, 1, c}, {3, 1, 1, 2 * c}, {4, 2, 1, 2 * c}, {3, 1, 1, 4 * c}, {4, 2, 1, 4 * c}, {3, 1, 1, 8 * c}, {4, 1, 0, 8 * c}, {1, 1, 0, 8 * c}, {1, 1, 0, 1}} {
		name := fmt.Sprintf("e%d", i)
		b.Scope(name, func() {
			w := m.spectral(name, m.param(name+".w", 0.02, l.o, in, l.k, l.k), true)
			x = b.Add(b.Conv2D(x, w, graph.NewConv(l.k, l.s, l.p)), m.perChannel(m.param(name+".bias", -1, l.o), l.o))
			if i != 7 && i != 9 {
				x = b.LeakyRelu(x, 0.1)
			}
		})
		in = l.o
	}
	return b.Mean(b.Softplus(x))
}

// infer is the inference net; it returns μ and log σ², (N, d, 1, 1).
func (m *model) infer(x graph.ID, c, d int) (mu, logVar graph.ID) {
	b := m.b
	in := b.Shape(x).At(1)
	for i, l := range []struct{ k, s, p, o int }{{3, 1, 1, c}, {4, 2, 1, 2 * c}, {4, 2, 1, 4 * c}, {4, 2, 1, 8 * c}} {
		name := fmt.Sprintf("q%d", i)
		b.Scope(name, func() {
			x = b.Conv2D(x, m.param(name+".w", 0.02, l.o, in, l.k, l.k), graph.NewConv(l.k, l.s, l.p))
			x = b.LeakyRelu(m.norm(name+".bn", x), 0.2)
		})
		in = l.o
	}
	head := func(name string) graph.ID {
		return b.Add(b.Conv2D(x, m.param(name+".w", 0.02, d, in, 4, 4), graph.NewConv(4, 1, 0)), m.perChannel(m.param(name+".bias", -1, d), d))
	}
	return head("qmu"), head("qlv")
}

// generate is the generator on latents h (N, d, 1, 1).
func (m *model) generate(h graph.ID, c int) graph.ID {
	b := m.b
	in, x := b.Shape(h).At(1), h
	for i, l := range []struct{ k, s, p, o int }{{4, 1, 0, 8 * c}, {4, 2, 1, 8 * c}, {4, 2, 1, 4 * c}, {4, 2, 1, 2 * c}} {
		name := fmt.Sprintf("g%d", i)
		b.Scope(name, func() {
			x = b.ConvTranspose2D(x, m.param(name+".w", 0.02, in, l.o, l.k, l.k), graph.NewConv(l.k, l.s, l.p))
			x = b.Relu(m.norm(name+".bn", x))
		})
		in = l.o
	}
	x = b.ConvTranspose2D(x, m.param("g4.w", 0.02, in, 3, 3, 3), graph.NewConv(3, 1, 1))
	return b.Tanh(b.Add(x, m.perChannel(m.param("g4.bias", -1, 3), 3)))
}

// adam updates params along the gradient of loss, all-reduced in buckets of
// per parameters.
func (m *model) adam(loss graph.ID, params []string, lr float64, per int) {
	b := m.b
	ids := make([]graph.ID, len(params))
	for i, p := range params {
		ids[i] = b.Var(p, m.types[p])
	}
	grads := b.Grad(loss, ids...)
	for hi := len(grads); hi > 0; hi -= per { // last layers first
		lo := max(hi-per, 0)
		copy(grads[lo:hi], b.AllReduce(collective.Mean, fmt.Sprintf("bucket %s", params[lo]), grads[lo:hi]...))
	}
	rate := b.Scale(b.Input("rate", graph.T(graph.F32)), lr)
	for i, p := range params {
		shape := m.types[p].Shape.Slice()
		b.Scope("adam/"+p, func() {
			m1, m2 := m.state(p+".m1", -1, shape...), m.state(p+".m2", -1, shape...)
			n1 := b.Add(b.Scale(m1, 0.5), b.Scale(grads[i], 0.5))
			n2 := b.Add(b.Scale(m2, 0.9), b.Scale(b.Square(grads[i]), 0.1))
			m.assign(m1, n1)
			m.assign(m2, n2)
			m.assign(ids[i], b.Sub(ids[i], b.Mul(b.Div(n1, b.Shift(b.Sqrt(n2), 1e-8)), rate)))
		})
	}
}

// bidvl is a whole training step of BiDVL, offset version, on batch images of
// 32×32, with nets of base width c.
func bidvl(batch, c int, sync bool) (*model, *graph.Graph, error) {
	const d = 100
	m := newModel(sync)
	b := m.b
	v := b.Input("v", graph.T(graph.F32, batch, 3, 32, 32))
	key := b.Input("key", graph.KeyType)
	normal := func(p philox.Purpose) graph.ID {
		return b.Draw(key, graph.Normal, p, 0, graph.T(graph.F32, batch, d, 1, 1))
	}
	h0, eps := normal(philox.Latent), normal(philox.Posterior)
	fake := m.generate(h0, c)
	mu, lv := m.infer(v, c, d)
	rec := m.generate(b.Add(mu, b.Mul(b.Exp(b.Scale(lv, 0.5)), eps)), c)
	qg := m.params
	m.params = nil
	e := (c*4 + 2) / 3
	ev, ef := m.energy(v, e), m.energy(fake, e)
	muFake, _ := m.infer(fake, c, d)
	per := 1 / float64(batch)
	kl := b.Scale(b.Sum(b.Sub(b.Add(b.Square(mu), b.Exp(lv)), b.Shift(lv, 1))), 0.5*per)
	vae := b.Add(b.Scale(b.Sum(b.Square(b.Sub(v, rec))), per), kl)
	lower := b.Add(b.Add(ef, b.Scale(b.Sum(b.Square(b.Sub(muFake, h0))), per/d)), b.Scale(vae, 0.05))
	upper := b.Sub(ev, m.energy(b.StopGrad(fake), e))
	es := m.params[:20:20]
	b.Output("upper", upper)
	b.Output("lower", lower)
	m.adam(upper, es, 1e-4, 6)
	m.adam(lower, qg, 3e-4, 6)
	g, err := b.Build()
	return m, g, err
}
