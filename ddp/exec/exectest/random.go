package exectest

import (
	"fmt"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

func runRandom(t *testing.T, be exec.Backend, dt graph.DType, o Options) {
	defer closeBackend(t, be)
	graphs := o.Graphs
	if graphs == 0 {
		graphs = 200
	}
	for seed := range graphs {
		c := RandomCase(uint64(seed))
		if err := Check(be, c, dt); err != nil {
			t.Errorf("%s: %v\n%s", c.Name, err, dump(c, dt))
		}
	}
}

func dump(c Case, dt graph.DType) string {
	g, err := c.Graph(dt, graph.Input)
	if err != nil {
		return err.Error()
	}
	var text stringWriter
	if err := g.Dump(&text); err != nil {
		return err.Error()
	}
	return string(text)
}

type stringWriter []byte

func (w *stringWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// RandomCase is a graph made of random ops, named by seed. Odd seeds are
// smooth, and also return gradients of the first and second order. Functions
// that jump are applied to arguments only, where no rounding moves them over
// the edge; magnitudes are kept near 1.
func RandomCase(seed uint64) Case {
	return Case{
		Name: fmt.Sprintf("random graph %d", seed), Tol: Whole,
		Args: args(floatOf(Between(-1, 1), 2, 3, 4, 4), floatOf(Between(-1, 1), 3, 4), floatOf(Between(-1, 1), 4, 4), floatOf(Between(-1, 1), 3, 3, 2, 2), floatOf(Between(-1, 1), 5)),
		Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			r := &random{b: b, name: philox.Name{Seed: seed, Purpose: philox.Testing, Sub: 1}, smooth: seed%2 == 1}
			return r.graph(x)
		},
	}
}

// random grows one graph.
type random struct {
	b      *graph.Builder
	name   philox.Name
	at     int
	smooth bool
	pool   []graph.ID
}

// n is a random integer below max.
func (r *random) n(max int) int {
	r.at++
	return r.name.Intn(r.at, max)
}

func (r *random) pick() graph.ID { return r.pool[r.n(len(r.pool))] }

func (r *random) graph(x []graph.ID) []graph.ID {
	r.pool = append(r.pool, x...)
	if !r.smooth {
		r.pool = append(r.pool, r.b.Step(x[0]), r.b.Sign(x[1]), r.b.Greater(x[2], r.b.Transpose(x[2], 1, 0)))
	}
	for range 6 + r.n(18) {
		if y := r.op(); y != 0 && r.b.Shape(y).Len() <= 600 {
			r.pool = append(r.pool, y)
		}
	}
	var out []graph.ID
	for range 1 + r.n(4) {
		out = append(out, r.pick())
	}
	out = append(out, r.pool[len(r.pool)-1])
	if r.smooth {
		out = append(out, r.gradients(out[0], x)...)
	}
	return out
}

// gradients are those of the sum of sin(y), and of the square of one of them.
func (r *random) gradients(y graph.ID, x []graph.ID) []graph.ID {
	first := r.b.Grad(r.b.Sum(r.b.Sin(y)), x...)
	return append(first, r.b.Grad(r.b.Sum(r.b.Square(first[r.n(len(first))])), x...)...)
}
