package graph_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// proof checks the derivatives of a scalar L₀ by finite differences, in
// float64. With random directions v₁, v₂, …, it builds
//
//	L_k = ⟨∂L_{k−1}/∂x, v_k⟩,   S_k = Σ |∂L_{k−1}/∂x ⊙ v_k|
//
// by Grad, and compares L_k with the central difference
//
//	(8(f(h) − f(−h)) − f(2h) + f(−2h)) / 12h,   f(h) = L_{k−1}(x + h·v_k).
//
// Its error is h⁴f⁽⁵⁾/30 plus rounding, about 2⁻⁵²·M/h where M is the sum of
// the magnitudes that make f. A proof holds if they agree within
// rel·S_k + abs·M, M being S_{k−1}, or the magnitude of L₀.
type proof struct {
	args   []exectest.Arg
	x      map[string]*exec.Tensor // by name a0, a1, …
	scalar func(b *graph.Builder, x []graph.ID) (l, magnitude graph.ID)
	orders int
	h      float64
	rel    float64
	abs    float64
	seed   uint64
}

func (p *proof) check(t *testing.T) {
	t.Helper()
	g, dirs := p.graph(t)
	prog, err := ref.New().Compile(g, exec.Options{Name: "proof"})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range dirs {
		copy(prog.Input(name).Bytes(), d.Bytes())
	}
	p.run(t, prog, 0, 0, dirs)
	l, s := make([]float64, p.orders+1), make([]float64, p.orders+1)
	for k := range l {
		l[k], s[k] = prog.Output(fmt.Sprintf("L%d", k)).Scalar(), prog.Output(fmt.Sprintf("S%d", k)).Scalar()
	}
	for k := 1; k <= p.orders; k++ {
		f := func(h float64) float64 {
			p.run(t, prog, k, h, dirs)
			return prog.Output(fmt.Sprintf("L%d", k-1)).Scalar()
		}
		fd := (8*(f(p.h)-f(-p.h)) - f(2*p.h) + f(-2*p.h)) / (12 * p.h)
		if off, may := math.Abs(fd-l[k]), p.rel*s[k]+p.abs*s[k-1]; !(off <= may) {
			t.Errorf("order %d: the derivative is %.12g, finite differences give %.12g: off by %.2g, may be %.2g (Σ|terms| %.3g)", k, l[k], fd, off, may, s[k])
		}
	}
}

// graph builds L₀ … and S₀ …, and makes the directions "v<order>_<arg>".
func (p *proof) graph(t *testing.T) (*graph.Graph, map[string]*exec.Tensor) {
	t.Helper()
	var b graph.Builder
	var x, wrt []graph.ID
	for i, a := range p.args {
		x = append(x, b.Input(fmt.Sprintf("a%d", i), a.Type(graph.F64)))
		if p.moves(a) {
			wrt = append(wrt, x[i])
		}
	}
	dirs := map[string]*exec.Tensor{}
	l, s := p.scalar(&b, x)
	b.Output("L0", l)
	b.Output("S0", s)
	for k := 1; k <= p.orders; k++ {
		l, s = p.project(&b, b.Grad(l, wrt...), k, dirs)
		b.Output(fmt.Sprintf("L%d", k), l)
		b.Output(fmt.Sprintf("S%d", k), s)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name := range dirs { // an input that no output needs has no buffer
		if !liveInput(g, name) {
			delete(dirs, name)
		}
	}
	return g, dirs
}

// moves says whether an argument is differentiated.
func (p *proof) moves(a exectest.Arg) bool { return !a.Fixed && a.Type(graph.F64).DType == graph.F64 }

// project multiplies gradients by random directions: the sum, and the sum of
// magnitudes.
func (p *proof) project(b *graph.Builder, grads []graph.ID, k int, dirs map[string]*exec.Tensor) (l, s graph.ID) {
	zero := b.Zeros(graph.T(graph.F64))
	l, s = zero, zero
	at := 0
	for i, a := range p.args {
		if !p.moves(a) {
			continue
		}
		name := fmt.Sprintf("v%d_%d", k, i)
		dirs[name] = exectest.Arg{Shape: a.Shape, Fill: exectest.Between(-1, 1)}.Tensor(graph.F64, fmt.Sprint(p.seed), 100*k+i)
		term := b.Mul(grads[at], b.Input(name, a.Type(graph.F64)))
		l, s = b.Add(l, b.Sum(term)), b.Add(s, b.Sum(b.Abs(b.StopGrad(term))))
		at++
	}
	return l, s
}

func liveInput(g *graph.Graph, name string) bool {
	for i, live := range g.Live() {
		if leaf, ok := g.Nodes()[i].Op.(graph.Leaf); ok && live && leaf.Name == name {
			return true
		}
	}
	return false
}

// run evaluates at x + h·v_k.
func (p *proof) run(t *testing.T, prog exec.Program, k int, h float64, dirs map[string]*exec.Tensor) {
	t.Helper()
	for i := range p.args {
		name := fmt.Sprintf("a%d", i)
		in := prog.Input(name)
		if in == nil {
			continue
		}
		copy(in.Bytes(), p.x[name].Bytes())
		if v := dirs[fmt.Sprintf("v%d_%d", k, i)]; v != nil {
			for e := range in.F64() {
				in.F64()[e] += h * v.F64()[e]
			}
		}
	}
	if err := exec.Run(context.Background(), prog); err != nil {
		t.Fatal(err)
	}
}

// proofOf is the proof of a case: L₀ = Σ c·sin(y) + d·y over its outputs, with
// random c and d. The sine makes every order of derivative matter even where
// the op is linear.
func proofOf(c exectest.Case) *proof {
	h := fnv.New64a()
	h.Write([]byte(c.Name))
	return &proof{
		args: c.Args, x: c.Tensors(graph.F64), orders: 3, seed: h.Sum64(),
		h: 2e-4, rel: 1e-6, abs: 1e-9,
		scalar: func(b *graph.Builder, x []graph.ID) (l, magnitude graph.ID) {
			l, magnitude = b.Zeros(graph.T(graph.F64)), b.Zeros(graph.T(graph.F64))
			for i, y := range c.Build(b, x) {
				if b.Type(y).DType != graph.F64 {
					continue
				}
				key := b.Iota(graph.T(graph.I64, 3), 0)
				weight := func(sub uint16) graph.ID {
					flat := b.Draw(key, graph.Normal, philox.Testing, sub+uint16(2*i), graph.T(graph.F64, b.Shape(y).Len()))
					return b.Reshape(flat, b.Shape(y))
				}
				for _, term := range []graph.ID{b.Mul(weight(0), b.Sin(y)), b.Mul(weight(1), y)} {
					l, magnitude = b.Add(l, b.Sum(term)), b.Add(magnitude, b.Sum(b.Abs(term)))
				}
			}
			return l, magnitude
		},
	}
}
