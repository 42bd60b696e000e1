package plan

import (
	"bytes"
	"flag"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// step is a small training step: convolution, batch norm over all ranks,
// rectifier, linear head, loss, and Adam in two buckets.
func step(t *testing.T) *graph.Graph {
	t.Helper()
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	x, want := b.Input("x", f(8, 3, 6, 6)), b.Input("want", f(8, 5))
	w, g, s, head := b.Var("w", f(4, 3, 3, 3)), b.Var("g", f(4)), b.Var("s", f(4)), b.Var("head", f(144, 5))
	var y graph.ID
	b.Scope("net", func() {
		h := b.Conv2D(x, w, graph.NewConv(3, 1, 1))
		b.Scope("bn", func() {
			mean := b.AllReduce(collective.Mean, "mean", b.MeanKeep(h, 0, 2, 3))[0]
			d := b.Sub(h, mean)
			vr := b.AllReduce(collective.Mean, "variance", b.MeanKeep(b.Square(d), 0, 2, 3))[0]
			inv := b.Recip(b.Sqrt(b.Shift(vr, 1e-5)))
			per := func(v graph.ID) graph.ID { return b.Reshape(v, graph.D(1, 4, 1, 1)) }
			h = b.Relu(b.Add(b.Mul(b.Mul(d, inv), per(g)), per(s)))
		})
		y = b.MatMul(b.Reshape(h, graph.D(8, 144)), head, false, false)
	})
	loss := b.Mean(b.Square(b.Sub(y, want)))
	b.Output("loss", loss)
	params := []graph.ID{w, g, s, head}
	grads := b.Grad(loss, params...)
	grads = append(b.AllReduce(collective.Mean, "bucket 0", grads[:3]...), b.AllReduce(collective.Mean, "bucket 1", grads[3])...)
	for i, p := range params {
		leaf := b.Node(p).Op.(graph.Leaf)
		b.Scope("adam/"+leaf.Name, func() {
			m, v := b.Var(leaf.Name+".m", leaf.Type), b.Var(leaf.Name+".v", leaf.Type)
			m1 := b.Add(b.Scale(m, 0.5), b.Scale(grads[i], 0.5))
			v1 := b.Add(b.Scale(v, 0.9), b.Scale(b.Square(grads[i]), 0.1))
			b.Assign(m, m1)
			b.Assign(v, v1)
			b.Assign(p, b.Sub(p, b.Scale(b.Div(m1, b.Shift(b.Sqrt(v1), 1e-8)), 1e-3)))
		})
	}
	gr, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return gr
}

func compile(t *testing.T, g *graph.Graph, world int) *Plan {
	t.Helper()
	p := New(g, Options{Name: "step", World: world})
	p.Allocate()
	return p
}

func dump(t *testing.T, p *Plan) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Dump(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The golden files say what is fused, where collectives start and are waited
// for, what is assigned in place, and how much memory it takes.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		file  string
		world int
	}{{"step1.txt", 1}, {"step2.txt", 2}} {
		golden(t, c.file, string(dump(t, compile(t, step(t), c.world))))
	}
}

func TestDumpIsStable(t *testing.T) {
	first := dump(t, compile(t, step(t), 2))
	for range 5 {
		if !bytes.Equal(first, dump(t, compile(t, step(t), 2))) {
			t.Fatal("equal graphs give different plans")
		}
	}
}

// Every collective is started once, waited for once, later, and the parts of
// its bucket are not touched between.
func TestCollectivesAreExclusive(t *testing.T) {
	p := compile(t, step(t), 2)
	open := map[int]int{} // bucket value → number
	started, ended := 0, 0
	for i, s := range p.Steps {
		switch op := s.Op.(type) {
		case Start:
			if op.Number != started {
				t.Errorf("step %d starts collective %d, want %d", i, op.Number, started)
			}
			started++
			open[op.Bucket] = op.Number
			continue
		case Wait:
			ended++
			for b, n := range open {
				if n == op.Number {
					delete(open, b)
				}
			}
			continue
		}
		for _, v := range append(append([]int(nil), s.In...), s.Out...) {
			if _, ok := open[p.Values[v].Root]; ok {
				t.Errorf("step %d touches a bucket under way", i)
			}
		}
	}
	if started != 6 || ended != 6 || len(open) != 0 {
		t.Errorf("%d collectives started, %d waited for, %d left; want 6, 6, 0", started, ended, len(open))
	}
}
