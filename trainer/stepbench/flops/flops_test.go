package flops_test

import (
	"maps"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/stepbench/flops"
)

// The four ops against numbers worked out by hand.
func TestByHand(t *testing.T) {
	f32 := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	tests := []struct {
		name  string
		build func(b *graph.Builder) graph.ID
		want  flops.Count
	}{
		{"conv 3x3, 2 to 5 channels, 4x6 image, batch 3", func(b *graph.Builder) graph.ID {
			return b.Conv2D(b.Input("x", f32(3, 2, 4, 6)), b.Input("w", f32(5, 2, 3, 3)), graph.NewConv(3, 1, 1))
		}, flops.Count{flops.Conv: 2 * (3 * 5 * 4 * 6) * (2 * 9)}},
		{"conv 4x4 stride 2: 8x8 to 4x4", func(b *graph.Builder) graph.ID {
			return b.Conv2D(b.Input("x", f32(1, 2, 8, 8)), b.Input("w", f32(5, 2, 4, 4)), graph.NewConv(4, 2, 1))
		}, flops.Count{flops.Conv: 2 * (5 * 4 * 4) * (2 * 16)}},
		{"2 groups: half the input channels", func(b *graph.Builder) graph.ID {
			c := graph.NewConv(3, 1, 1)
			c.Groups = 2
			return b.Conv2D(b.Input("x", f32(1, 4, 5, 5)), b.Input("w", f32(6, 2, 3, 3)), c)
		}, flops.Count{flops.Conv: 2 * (6 * 5 * 5) * (2 * 9)}},
		{"transposed conv 4x4 stride 2: 4x4 to 8x8", func(b *graph.Builder) graph.ID {
			return b.ConvTranspose2D(b.Input("x", f32(1, 5, 4, 4)), b.Input("w", f32(5, 2, 4, 4)), graph.NewConv(4, 2, 1))
		}, flops.Count{flops.ConvGradX: 2 * (5 * 4 * 4) * (2 * 16)}},
		{"product 2x3 by 3x4", func(b *graph.Builder) graph.ID {
			return b.MatMul(b.Input("x", f32(2, 3)), b.Input("y", f32(3, 4)), false, false)
		}, flops.Count{flops.MatMul: 2 * 2 * 3 * 4}},
		{"the same, both transposed", func(b *graph.Builder) graph.ID {
			return b.MatMul(b.Input("x", f32(3, 2)), b.Input("y", f32(4, 3)), true, true)
		}, flops.Count{flops.MatMul: 2 * 2 * 3 * 4}},
		{"both gradients of a conv, and the conv they need not", func(b *graph.Builder) graph.ID {
			x, w := b.Input("x", f32(1, 2, 8, 8)), b.Input("w", f32(5, 2, 4, 4))
			d := b.Grad(b.Sum(b.Conv2D(x, w, graph.NewConv(4, 2, 1))), x, w)
			return b.Add(b.Sum(d[0]), b.Sum(d[1]))
		}, flops.Count{flops.ConvGradX: 2 * (5 * 4 * 4) * (2 * 16), flops.ConvGradW: 2 * (5 * 4 * 4) * (2 * 16)}},
		{"pointwise", func(b *graph.Builder) graph.ID { return b.Exp(b.Input("x", f32(7))) }, flops.Count{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &graph.Builder{}
			b.Output("y", tt.build(b))
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			if got := flops.Of(g); !maps.Equal(got, tt.want) {
				t.Errorf("count %v, want %v", got, tt.want)
			}
		})
	}
}

// A whole BiDVL step against the formula of the PyTorch peers, whose count of a
// training step is 7·G + 8·E + 6·Q (G, E, Q: one forward pass each; a backward
// pass counts twice). Our graph does less, each part known: it holds G(ĥ) once
// for both levels (−G), no gradient with respect to Q's weights in the latent
// term (−Q), and none with respect to the pictures, the latents or anything
// before a first layer (−2·E₁, −Q₁, −G₁).
func TestStepAgainstPeers(t *testing.T) {
	const batch = 4
	cfg := bidvl.CIFAR10().Config
	cfg.Net.Width = 8
	net, err := cfg.Net.Build()
	if err != nil {
		t.Fatal(err)
	}
	total := func(c flops.Count) int64 { return c[flops.Conv] + c[flops.ConvGradX] + c[flops.ConvGradW] }
	forward := func(f func(c *nn.Context, v, h graph.ID)) int64 {
		c := nn.NewContext(nn.Eval, 1)
		f(c, c.Input("v", graph.T(graph.F32, batch, 3, 32, 32)), c.Input("h", graph.T(graph.F32, batch, cfg.Net.Latent)))
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		return total(flops.Of(g))
	}
	e := forward(func(c *nn.Context, v, _ graph.ID) {
		_, y := net.Energy(c, v)
		c.Output("y", y)
	})
	q := forward(func(c *nn.Context, v, _ graph.ID) {
		mean, logVar := net.Inference(c, v)
		c.Output("y", c.Add(mean, logVar))
	})
	g := forward(func(c *nn.Context, _, h graph.ID) { c.Output("y", net.Generator(c, h)) })
	width, latent := int64(cfg.Net.Width), int64(cfg.Net.Latent)
	side := width * 3 / 4
	const image = batch * 32 * 32
	e1, q1 := 2*image*9*3*width, 2*image*9*3*side // C3/1/1 from 3 channels
	g1 := 2 * batch * latent * 8 * side * 16      // T4/1/0 from 1×1
	heads := 2 * batch * 8 * side * 16 * latent   // C4/1/0; log σ² of Q's second pass is not used at all
	if e <= 0 || q <= 0 || g <= 0 {
		t.Fatalf("forward passes count E %d, Q %d, G %d", e, q, g)
	}
	// The peers count 6·Q for two passes with weight gradients; frozen it is 5,
	// and its second pass runs one head of the two, forwards and backwards.
	want := 6*g - g1 + 8*e - 2*e1 + 5*q - q1 - 2*heads
	step, _, err := cfg.Step(1, batch)
	if err != nil {
		t.Fatal(err)
	}
	if got := total(flops.Of(step)); got != want {
		t.Errorf("the step counts %d, want %d (E %d, Q %d, G %d)", got, want, e, q, g)
	}
	peers := 7*g + 8*e + 6*q
	if r := float64(want) / float64(peers); r < 0.75 || r > 1 {
		t.Errorf("our step does %.2f of the work that the peers' formula counts", r)
	}
	cfg.FreshLatent = true // one more pass through G
	step, _, err = cfg.Step(1, batch)
	if err != nil {
		t.Fatal(err)
	}
	if got := total(flops.Of(step)); got != want+g {
		t.Errorf("with fresh latents the step counts %d, want %d", got, want+g)
	}
}
