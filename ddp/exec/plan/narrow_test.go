package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// rounding runs the steps of a plan in order, and rounds what they make of the
// values in narrow to bfloat16, where it lies in float32.
func rounding(t *testing.T, p *Plan, world int, narrow map[int]bool) []*exec.Tensor {
	t.Helper()
	m, err := newMachine(p, world)
	if err != nil {
		t.Fatalf("%v in\n%s", err, dump(t, p))
	}
	m.start()
	for i, run := range m.steps {
		if err := run(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		for _, v := range p.Steps[i].Out {
			if !narrow[v] {
				continue
			}
			x, h := m.get(v), exec.NewTensor(graph.T(graph.BF16, 1))
			for k := range x.Type.Shape.Len() {
				h.SetAt(0, x.At(k))
				x.SetAt(k, h.At(0))
			}
			m.put(v, x)
		}
	}
	return m.logical()
}

// weightsIn are the values that are weights of convolutions.
func weightsIn(p *Plan) map[int]bool {
	is := map[int]bool{}
	for i := range p.Steps {
		if k := p.weightsOf(&p.Steps[i]); k >= 0 {
			is[p.Steps[i].In[k]] = true
		}
	}
	return is
}

// TestBF16Images: a program with images in bfloat16 is, bit for bit, the one in
// float32 whose images, and the weights that they meet, are rounded where they are
// stored. Nothing else is narrow.
func TestBF16Images(t *testing.T) {
	images, less := 0, 0
	check := func(name string, g *graph.Graph, world int, last bool) {
		t.Helper()
		p := New(g, Options{Name: name, World: world, BF16Images: true, WeightsLast: last})
		q := New(g, Options{Name: name, World: world, BF16Images: true, WeightsLast: last})
		weights, narrow := weightsIn(p), map[int]bool{}
		for v := range q.Values {
			if q.Values[v].DType == graph.BF16 {
				q.Values[v].DType = graph.F32
			}
		}
		for i := range p.Steps {
			s := &p.Steps[i]
			switch s.Op.(type) {
			case graph.Conv2D, graph.Conv2DGradX:
				if x, w := p.Values[s.In[0]].DType, p.Values[s.In[1]].DType; x != w {
					t.Errorf("%s: step %d, %v, has operands of %v and %v", name, i, s.Op, x, w)
				}
			}
		}
		p.Allocate()
		q.Allocate()
		for v := range p.Values {
			val := &p.Values[v]
			if val.DType != graph.BF16 {
				continue
			}
			narrow[v] = true
			images++
			if d := val.Dims; p.Values[val.Root].Space != Arena || d.Rank() == 4 && val.Last && d.At(1)*d.At(2) == 1 && !weights[v] {
				t.Errorf("%s: %s is narrow", name, p.name(v))
			}
		}
		for i := range p.Steps {
			s := &p.Steps[i]
			if f, ok := s.Op.(*Fused); ok {
				for _, v := range s.Out[len(f.Stores):] {
					if narrow[v] {
						t.Errorf("%s: the sum %s is narrow", name, p.name(v))
					}
				}
			}
		}
		if p.ArenaBytes < q.ArenaBytes {
			less++
		}
		got, want := rounding(t, p, world, nil), rounding(t, q, world, narrow)
		for i := range want {
			if !bytes.Equal(got[i].Bytes(), want[i].Bytes()) {
				t.Fatalf("%s: result %d differs\n%s", name, i, dump(t, p))
			}
		}
	}
	for _, last := range []bool{false, true} {
		check("step", step(t), 2, last)
		for _, c := range exectest.Networks() {
			g, err := c.Graph(graph.F32, graph.Var)
			if err != nil {
				t.Fatal(err)
			}
			check(c.Name, g, 1, last)
		}
	}
	for seed := range uint64(40) {
		g, err := random(rand.New(rand.NewPCG(seed, 9)), 5+int(seed)%40)
		if err != nil {
			t.Fatal(err)
		}
		check("random", g, 1+int(seed%2), seed%4 > 1)
	}
	t.Logf("%d images are narrow; %d programs take less memory", images, less)
	if images < 50 || less < 20 {
		t.Errorf("%d images are narrow and %d programs take less memory, want more", images, less)
	}
}

// TestBF16ImagesStay names what is narrow in a small network and what is not.
func TestBF16ImagesStay(t *testing.T) {
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	x, w, v := b.Input("x", f(2, 4, 6, 6)), b.Var("w", f(4, 4, 3, 3)), b.Var("v", f(4, 4, 6, 6))
	y := b.Conv2D(x, b.Scale(w, 0.5), graph.NewConv(3, 1, 1))     // narrow, and so are its weights
	m := b.MeanKeep(y, 0, 2, 3)                                   // a statistic
	z := b.Conv2D(b.Relu(b.Sub(y, m)), v, graph.NewConv(6, 1, 0)) // of an image that is narrow; the result has one pixel
	b.Output("y", b.Sum(b.Square(z)))
	b.Output("m", m)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "stay", BF16Images: true})
	p.Allocate()
	mustCount(t, string(dump(t, p)), map[string]int{
		" bf16[2,6,6,4]nhwc) = conv2d": 1, " bf16[2,6,6,4]nhwc) = transpose": 1, " bf16[2,6,6,4]nhwc) = t1": 1, " bf16[1,": 0, " bf16[2,1,1,": 0, " bf16[4,4,3,3]) = t0": 1, " bf16[4,4,6,6]) = copy (var": 1, " bf16[4,": 4, "fused f32": 5, "fused bf16": 0})
}

// What shows an image in other extents is of its type: images of one channel as vectors.
// They have the bits of the image as a reader of the image itself sees it.
func TestBF16ImagesAsVectors(t *testing.T) {
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	y := b.Conv2D(b.Input("x", f(2, 4, 6, 6)), b.Var("w", f(1, 4, 3, 3)), graph.NewConv(3, 1, 1))
	b.Output("image", b.Neg(y))
	b.Output("vectors", b.Neg(b.Reshape(y, graph.D(2, 36))))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "vectors", BF16Images: true})
	p.Allocate()
	mustCount(t, string(dump(t, p)), map[string]int{"conv2d": 1, " bf16[2,36])": 1, " bf16[2,6,6,1]nhwc) = conv2d": 1})
	all := rounding(t, p, 1, nil)
	if !bytes.Equal(all[0].Bytes(), all[1].Bytes()) {
		t.Errorf("the image differs from its vectors in\n%s", dump(t, p))
	}
}

// A part of an array that is read where it lies begins at a whole line, which half of its
// place might not be: of such an array nothing is narrow, on any rank.
func TestBF16ImagesOfParts(t *testing.T) {
	for size, narrow := range map[int]int{4: 0, 8: 1} { // parts of 64 bytes, and of 256
		var b graph.Builder
		f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
		y := b.Conv2D(b.Input("x", f(2, 4, size, size)), b.Var("w", f(1, 4, 3, 3)), graph.NewConv(3, 1, 1))
		b.Output("part", b.Neg(b.Part(2, b.Reshape(y, graph.D(2*size*size)))))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for rank := range 2 {
			p := New(g, Options{Name: "parts", World: 2, Rank: rank, BF16Images: true})
			p.Allocate()
			mustCount(t, string(dump(t, p)), map[string]int{fmt.Sprintf(" bf16[%d])", size*size): narrow, ",1]nhwc) = conv2d": 1})
			for i := range p.Steps {
				for _, v := range p.Steps[i].In {
					if _, _, at := p.View(v); at%Align != 0 {
						t.Errorf("step %d reads at %d, want whole lines, in\n%s", i, at, dump(t, p))
					}
				}
			}
		}
	}
}

// What a step cannot take in bfloat16 stays float32 though it is an image or made of images:
// operands of products, sums, what a variable takes, what lies beside float32s, and gradients
// of weights where one image is float32.
func TestBF16ImagesStayWide(t *testing.T) {
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	for _, tt := range []struct {
		name  string
		kind  Kind // of the steps that have no bfloat16, of gradients no result
		build func(b *graph.Builder, x graph.ID)
	}{
		{"a product", KindMatMul, func(b *graph.Builder, x graph.ID) {
			y := b.Conv2D(x, b.Var("w", f(1, 4, 3, 3)), same3)
			b.Output("y", b.MatMul(b.Var("v", f(36, 2)), b.Reshape(y, graph.D(2, 36)), false, false))
		}},
		{"a sum with the extents of an image", KindFused, func(b *graph.Builder, x graph.ID) {
			w := b.Var("w", f(4, 4, 3, 3))
			y := b.SumKeep(b.Conv2D(x, w, same3), 0)
			b.Output("y", b.Conv2D(y, w, same3))
		}},
		{"images beside a variable's", KindConcat, func(b *graph.Builder, x graph.ID) {
			y := b.Concat(1, b.Conv2D(x, b.Var("w", f(4, 4, 3, 3)), same3), b.Var("v", f(2, 4, 6, 6)))
			b.Output("y", b.Conv2D(y, b.Var("u", f(1, 8, 3, 3)), same3))
		}},
		{"images that are joined for a product", KindConcat, func(b *graph.Builder, x graph.ID) {
			y, z := b.Conv2D(x, b.Var("w", f(1, 4, 3, 3)), same3), b.Conv2D(x, b.Var("u", f(1, 4, 3, 3)), same3)
			both := b.Concat(0, y, z)
			b.Output("image", b.Conv2D(both, b.Var("t", f(1, 1, 3, 3)), same3))
			b.Output("y", b.MatMul(b.Reshape(both, graph.D(4, 36)), b.Var("v", f(36, 2)), false, false))
		}},
		{"a gradient of a variable's image", KindConv2DGradW, func(b *graph.Builder, x graph.ID) {
			w := b.Var("w", f(4, 4, 3, 3))
			g := b.Grad(b.Sum(b.Mul(b.Conv2D(b.Var("v", f(2, 4, 6, 6)), w, same3), x)), w)[0]
			b.Assign(w, b.Sub(w, g))
		}},
		{"a gradient that is assigned", KindConv2DGradW, func(b *graph.Builder, x graph.ID) {
			w := b.Var("w", f(4, 4, 3, 3))
			b.Assign(b.Var("v", f(4, 4, 3, 3)), b.Grad(b.Sum(b.Square(b.Conv2D(x, w, same3))), w)[0])
		}},
		{"a gradient in a product", KindConv2DGradW, func(b *graph.Builder, x graph.ID) {
			w := b.Var("w", f(4, 4, 3, 3))
			g := b.Grad(b.Sum(b.Square(b.Conv2D(x, w, same3))), w)[0]
			b.Output("y", b.MatMul(b.Var("v", f(2, 4)), b.Reshape(g, graph.D(4, 36)), false, false))
		}},
		{"weights that are a part of a variable", KindSlice, func(b *graph.Builder, x graph.ID) {
			w := b.Slice(b.Var("w", f(4, 8, 3, 3)), 1, 2, 6, 1)
			b.Output("y", b.Sum(b.Square(b.Conv2D(x, w, same3))))
		}},
		{"a gradient of an image and a pixel", KindConv2DGradW, func(b *graph.Builder, x graph.ID) {
			w := b.Var("w", f(4, 4, 6, 6))
			g := b.Grad(b.Sum(b.Square(b.Conv2D(x, w, graph.NewConv(6, 1, 0)))), w)[0]
			b.Assign(w, b.Sub(w, g))
		}},
	} {
		var b graph.Builder
		tt.build(&b, b.Relu(b.Conv2D(b.Input("x", f(2, 4, 6, 6)), b.Var("first", f(4, 4, 3, 3)), same3)))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: tt.name, BF16Images: true, WeightsLast: true})
		p.Allocate()
		seen, images := 0, 0
		for i := range p.Steps {
			s := &p.Steps[i]
			for _, v := range s.Out {
				images += b2i(p.Values[v].DType == graph.BF16)
			}
			all := append(slices.Clone(s.In), s.Out...)
			if f, ok := s.Op.(*Fused); ok {
				all = s.Out[len(f.Stores):]
			}
			if s.Kind() != tt.kind {
				continue
			}
			for _, v := range all {
				seen++
				if isImage := tt.kind == KindConv2DGradW && v != s.Out[0]; !isImage && p.Values[v].DType != graph.F32 {
					t.Errorf("%s: step %d has %s, in\n%s", tt.name, i, p.name(v), dump(t, p))
				}
			}
		}
		if seen == 0 || images == 0 {
			t.Errorf("%s: %d arrays of its steps, %d of bfloat16s, want some of both, in\n%s", tt.name, seen, images, dump(t, p))
		}
		rounding(t, p, 1, nil) // the machine refuses a step whose types do not fit
	}
}

// A gradient of weights that fused steps alone read is narrow, also where it is read as a vector,
// and is its images' gradient, rounded.
func TestBF16Gradients(t *testing.T) {
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	w := b.Var("w", f(4, 4, 3, 3))
	y := b.Relu(b.Conv2D(b.Input("x", f(2, 4, 6, 6)), b.Var("first", f(4, 4, 3, 3)), same3))
	g := b.Grad(b.Sum(b.Square(b.Conv2D(y, w, same3))), w)[0]
	b.Output("gradient", b.Neg(g))
	b.Output("vector", b.Neg(b.Reshape(g, graph.D(144))))
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(built, Options{Name: "gradients", BF16Images: true})
	p.Allocate()
	text := string(dump(t, p))
	mustCount(t, text, map[string]int{" bf16[4,4,3,3]) = conv2d_grad_w": 1})
	all := rounding(t, p, 1, nil)
	if !bytes.Equal(all[0].Bytes(), all[1].Bytes()) {
		t.Errorf("the gradient differs from its vector in\n%s", text)
	}
}

// Of a gradient, too, a part that is read where it lies begins at a whole line, on any rank.
func TestBF16GradientsOfParts(t *testing.T) {
	for n, narrow := range map[int]int{8: 0, 16: 1} { // parts of 576 and of 1152 bytes
		var b graph.Builder
		f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
		w := b.Var("w", f(n, 4, 3, 3))
		y := b.Relu(b.Conv2D(b.Input("x", f(2, 4, 6, 6)), b.Var("first", f(4, 4, 3, 3)), same3))
		g := b.Grad(b.Sum(b.Square(b.Conv2D(y, w, same3))), w)[0]
		b.Output("part", b.Neg(b.Part(2, b.Reshape(g, graph.D(n*36)))))
		built, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for rank := range 2 {
			p := New(built, Options{Name: "parts", World: 2, Rank: rank, BF16Images: true})
			p.Allocate()
			text := string(dump(t, p))
			mustCount(t, text, map[string]int{fmt.Sprintf(" bf16[%d])", n*18): narrow, ") = conv2d_grad_w": 1})
			for i := range p.Steps {
				for _, v := range p.Steps[i].In {
					if _, _, at := p.View(v); at%Align != 0 {
						t.Errorf("step %d reads at %d, want whole lines, in\n%s", i, at, text)
					}
				}
			}
			gradient := rounding(t, p, 2, nil)[0]
			if gradient.Type.Shape.Len() != n*18 {
				t.Errorf("rank %d: %v", rank, gradient.Type)
			}
		}
	}
}

// Weights that are read by others, too, or made by what makes no bfloat16 are copied for the
// convolutions, once for all of them.
func TestBF16WeightsAreCopied(t *testing.T) {
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	made := func(b *graph.Builder) graph.ID { return b.Scale(b.Var("w", f(4, 4, 3, 3)), 0.5) }
	for name, build := range map[string]func(b *graph.Builder, x graph.ID) (weights graph.ID){
		"a part is read": func(b *graph.Builder, _ graph.ID) graph.ID {
			w := made(b)
			b.Output("part", b.Slice(w, 1, 0, 2, 1))
			return w
		},
		"a matrix is read": func(b *graph.Builder, _ graph.ID) graph.ID {
			w := made(b)
			b.Output("product", b.MatMul(b.Var("v", f(2, 4)), b.Reshape(w, graph.D(4, 36)), false, false))
			return w
		},
		"weights of other extents are read": func(b *graph.Builder, x graph.ID) graph.ID {
			w, paired := made(b), same3
			paired.Groups = 2
			b.Output("other", b.Sum(b.Square(b.Conv2D(x, b.Reshape(w, graph.D(8, 2, 3, 3)), paired))))
			return w
		},
		"assigned": func(b *graph.Builder, _ graph.ID) graph.ID {
			w := made(b)
			b.Assign(b.Var("v", f(4, 4, 3, 3)), w)
			return w
		},
		"a sum": func(b *graph.Builder, _ graph.ID) graph.ID { return b.SumKeep(b.Var("w", f(8, 4, 3, 3)), 0) },
		"two readers": func(b *graph.Builder, x graph.ID) graph.ID {
			w := b.Var("w", f(4, 4, 3, 3))
			b.Output("other", b.Sum(b.Square(b.Conv2D(b.Relu(b.Neg(x)), w, same3))))
			return w
		},
	} {
		var b graph.Builder
		x := b.Relu(b.Conv2D(b.Input("x", f(2, 4, 6, 6)), b.Var("first", f(4, 4, 3, 3)), same3))
		b.Output("y", b.Sum(b.Square(b.Conv2D(x, build(&b, x), same3))))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: name, BF16Images: true})
		p.Allocate()
		text := string(dump(t, p))
		if n := strings.Count(text, "bf16[4,4,3,3]) = copy (") + strings.Count(text, "bf16[1,4,3,3]) = copy ("); n != 2 {
			t.Errorf("%s: want one copy of the weights beside that of the first, in\n%s", name, text)
		}
		rounding(t, p, 1, nil) // the machine refuses a step whose types do not fit
	}
}
