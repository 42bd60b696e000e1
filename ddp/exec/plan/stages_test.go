package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// text is the nodes, a line each: late ones begin with a tilde.
func (d *dag) text() string {
	var b strings.Builder
	name := func(vs []int) string {
		var s []string
		for _, v := range vs {
			switch val := &d.Values[v]; {
			case val.IsConst:
				s = append(s, fmt.Sprint(val.Const))
			case d.Values[val.Root].Space == Arena:
				s = append(s, fmt.Sprintf("%%%d", v))
			case d.Values[val.Root].Space == Bucket:
				s = append(s, fmt.Sprintf("%%%d@bucket%d+%d", v, val.Root, val.Off))
			default:
				s = append(s, fmt.Sprintf("%%%d(%v)", v, d.Values[val.Root].Space))
			}
		}
		return strings.Join(s, " ")
	}
	for _, n := range d.nodes {
		late := " "
		if n.late {
			late = "~"
		}
		t := &d.Values[n.out[0]]
		fmt.Fprintf(&b, "%s%s %v%v = %s %s\n", late, name(n.out), t.DType, t.Dims, n.op, name(n.in))
	}
	for _, a := range d.assigns {
		fmt.Fprintf(&b, " assign %s = %s\n", name([]int{a.dst}), name([]int{a.src}))
	}
	return b.String()
}

// image is the type of an array that is worth a pass.
var image = graph.T(graph.F32, 512, 16)

// examples are small graphs that a pass changes.
var examples = map[string]func(b *graph.Builder){
	"lower": func(b *graph.Builder) { // equal behind a StopGrad; constants; a layout; an old value that is assigned
		x, w := b.Input("x", graph.T(graph.F32, 2, 3, 4, 4)), b.Var("w", graph.T(graph.F32, 3, 3, 1, 1))
		v := b.Var("v", graph.T(graph.F32, 3, 3, 1, 1))
		y := b.Conv2D(x, w, graph.NewConv(1, 1, 0))
		z := b.Conv2D(b.StopGrad(x), w, graph.NewConv(1, 1, 0))
		r := b.Relu(y)
		b.Output("y", b.Mul(b.Add(r, b.Step(z)), b.Exp(b.Full(b.Type(y), 2))))
		b.Assign(w, v)
		b.Assign(v, w)
	},
	"join": func(b *graph.Builder) { // images that are made, and an input that is copied; gradients that are added up
		x, y := b.Input("x", graph.T(graph.F32, 2, 1, 4, 4)), b.Exp(b.Input("y", graph.T(graph.F32, 4, 1, 4, 4)))
		w := b.Var("w", graph.T(graph.F32, 8, 1, 3, 3))
		e := func(x graph.ID) graph.ID { return b.Sum(b.Exp(b.Conv2D(x, w, graph.NewConv(3, 1, 1)))) }
		b.Output("g", b.Grad(b.Sub(e(x), e(y)), w)[0])
	},
	"buckets": func(b *graph.Builder) { // one part is made in its place, one is copied
		x, v := b.Input("x", image), b.Var("v", graph.T(graph.F32, 16))
		sum := b.AllReduce(collective.Sum, "sums", b.Sum(x), v)
		b.Output("x", sum[0])
		b.Output("v", sum[1])
	},
	"moments": func(b *graph.Builder) {
		x := b.Input("x", image)
		m := b.MeanKeep(x, 0)
		b.Output("variance", b.MeanKeep(b.Square(b.Sub(x, m)), 0))
		b.Output("mean", m)
	},
	"split": func(b *graph.Builder) { // three arrays, made one after the other
		x := b.Exp(b.Input("x", image))
		y := b.Exp(b.Mul(b.Input("y", image), b.SumKeep(x, 1)))
		z := b.Exp(b.Mul(b.Input("z", image), b.SumKeep(y, 1)))
		b.Output("sum", b.SumKeep(b.Add(z, b.Add(y, x)), 0))
	},
	"linear": func(b *graph.Builder) {
		x, y, a := b.Input("x", image), b.Input("y", image), b.Input("a", graph.T(graph.F32, 1, 16))
		b.Output("y", b.SumKeep(y, 0))
		z := b.Sub(b.Mul(y, a), b.Sub(x, b.MeanKeep(x, 0)))
		b.Output("z", b.Add(z, b.SumKeep(z, 0)))
	},
	"unshare": func(b *graph.Builder) { // the second sum follows from the first, which is reduced in place
		x := b.Input("x", image)
		b.Output("all", b.AllReduce(collective.Sum, "sum", b.SumKeep(x, 0))[0])
		b.Output("own", b.SumKeep(b.Neg(x), 0))
	},
	"recompute": func(b *graph.Builder) { // d − s is read in two groups, as d is
		x, s := b.Input("x", image), b.Input("s", graph.T(graph.F32, 1, 16))
		d := b.Exp(x)
		c := b.Sub(d, s)
		t := b.Add(b.SumKeep(c, 0), b.SumKeep(b.Square(c), 0))
		b.Output("y", b.Add(b.Mul(c, t), d))
	},
	"derive": func(b *graph.Builder) { // the centred product is not kept
		x, w := b.Input("x", image), b.Input("w", graph.T(graph.F32, 16, 16))
		p := b.MatMul(x, w, false, false)
		d := b.Sub(p, b.MeanKeep(p, 0))
		z := b.MatMul(b.Relu(d), w, false, false)
		b.Output("s", b.SumKeep(b.Mul(z, b.Mul(b.Step(b.Relu(d)), d)), 0))
	},
	"fuse": func(b *graph.Builder) { // two results and a sum of one space, then another space
		x, y := b.Input("x", image), b.Var("y", image)
		s := b.Add(x, y)
		b.Assign(y, b.Scale(s, 0.5))
		b.Output("s", b.Tanh(b.SumKeep(b.Square(s), 1)))
	},
	"schedule": func(b *graph.Builder) { // the product runs while the collective does
		x, w := b.Input("x", image), b.Input("w", graph.T(graph.F32, 16, 16))
		s := b.AllReduce(collective.Mean, "sum", b.SumKeep(x, 0))[0]
		b.Output("s", b.Sqrt(s))
		b.Output("p", b.MatMul(x, w, false, false))
	},
	"rematerialise": func(b *graph.Builder) { // the upsampled image waits for the last step
		x := b.Upsample2D(b.Input("x", graph.T(graph.F32, 1, 1, 16, 16)), graph.Bilinear, 2)
		w := b.Input("w", graph.T(graph.F32, 1, 1, 3, 3))
		y := x
		for range 3 {
			y = b.Conv2D(y, w, graph.NewConv(3, 1, 1))
		}
		b.Output("y", b.Add(x, y))
	},
	"assign": func(b *graph.Builder) { // in place, and copied since the old value is read later
		x := b.Input("x", image)
		v, w := b.Var("v", image), b.Var("w", image)
		b.Assign(v, b.Add(v, x))
		s := b.Add(w, x)
		b.Assign(w, s)
		b.Output("s", b.SumKeep(b.Mul(w, b.SumKeep(s, 0)), 0))
	},
	"memory": func(b *graph.Builder) { // the second product lies where the first one's operand did
		x, w := b.Input("x", image), b.Input("w", graph.T(graph.F32, 16, 16))
		for range 3 {
			x = b.Relu(b.MatMul(x, w, false, false))
		}
		b.Output("y", x)
	},
}

// stages is what a graph is before and after a pass.
func stages(t *testing.T, name string) (before, after string) {
	t.Helper()
	var b graph.Builder
	examples[name](&b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := g.Dump(&text); err != nil {
		t.Fatal(err)
	}
	o := Options{Name: name, World: 2}
	if name == "join" {
		o.Join, o.WeightsLast = 1<<20, true
	}
	d := lower(g, o)
	if name == "lower" {
		return text.String(), d.text()
	}
	for _, p := range passes(o) {
		before := d.text()
		if p.run(d); p.name == name {
			return before, d.text()
		}
	}
	before = d.text()
	p := d.Plan
	numbered := func() string { // a value's place is its number until it has one
		for v := range p.Values {
			p.Values[v].Offset = v
		}
		return string(dump(t, p))
	}
	stages := []pass{
		{"fuse", func(*dag) { p.Steps = inOrder(fuse(d)) }},
		{"schedule", func(*dag) { p.Steps = schedule(p, fuse(lowered(t, g, o, &p))) }},
		{"rematerialise", func(*dag) { rematerialise(p) }},
		{"assign", func(*dag) { p.assign() }},
		{"memory", func(*dag) { p.Allocate() }},
	}
	for _, s := range stages {
		if s.name == "rematerialise" && name != s.name {
			continue
		}
		if s.run(nil); s.name == "memory" {
			return before, string(dump(t, p))
		}
		after := numbered()
		if s.name == name {
			return before, after
		}
		before = after
	}
	t.Fatalf("there is no pass %s", name)
	return "", ""
}

// lowered is the nodes of g after all passes, and their plan.
func lowered(t *testing.T, g *graph.Graph, o Options, p **Plan) *dag {
	t.Helper()
	d := lower(g, o)
	for _, pass := range passes(o) {
		pass.run(d)
	}
	*p = d.Plan
	return d
}

// inOrder is the units as they are.
func inOrder(units []node) (steps []Step) {
	for _, u := range units {
		steps = append(steps, Step{Op: u.op, In: u.in, Out: u.out, Scope: u.scope})
	}
	return steps
}

// The golden files show a small graph before and after each pass.
func TestPasses(t *testing.T) {
	for name := range examples {
		t.Run(name, func(t *testing.T) {
			before, after := stages(t, name)
			if before == after {
				t.Error("the pass changes nothing")
			}
			golden(t, filepath.Join("passes", name+".txt"), "before:\n"+before+"after:\n"+after)
		})
	}
	for _, p := range passes(Options{Join: 1}) {
		if examples[p.name] == nil {
			t.Errorf("no example for %s", p.name)
		}
	}
	for _, p := range passes(Options{Deterministic: true}) {
		if by, goes := map[string]string{"split": "levels", "linear": "what else is summed"}[p.name]; goes {
			t.Errorf("a deterministic program goes by %s", by)
		}
	}
}

// golden compares text with a file of testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if the new plan is right, run go test ./ddp/exec/plan -update. Got:\n%s", file, got)
	}
}
