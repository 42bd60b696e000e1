package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/graph"
)

// siamese is a random network whose convolutions have few weights among them, with
// gradients.
func siamese(r *rand.Rand) (*graph.Graph, error) {
	var b graph.Builder
	var weights, images []graph.ID
	for i := range 1 + r.IntN(3) {
		weights = append(weights, b.Var(fmt.Sprint("w", i), graph.T(graph.F32, 4, 4, 3, 3)))
	}
	for i := range 2 + r.IntN(3) {
		x := b.Var(fmt.Sprint("x", i), graph.T(graph.F32, 1+r.IntN(2), 4, 4, 4))
		if r.IntN(3) > 0 {
			x = b.Tanh(x)
		}
		images = append(images, x)
	}
	any := func() graph.ID { return images[r.IntN(len(images))] }
	loss := b.Full(graph.T(graph.F32), 0)
	for range 3 + r.IntN(10) {
		x, w := any(), weights[r.IntN(len(weights))]
		switch r.IntN(6) {
		case 0:
			x = b.ConvTranspose2D(x, w, same3)
		case 1:
			y := any()
			if b.Shape(y) != b.Shape(x) {
				continue
			}
			x = b.Mul(b.Tanh(x), y)
		default:
			x = b.Conv2D(x, w, same3)
		}
		if r.IntN(3) > 0 {
			x = b.Tanh(b.Add(x, b.Mean(any())))
		}
		images = append(images, x)
		if r.IntN(2) == 0 {
			loss = b.Add(loss, b.Mean(b.Square(x)))
		}
	}
	loss = b.Add(loss, b.Mean(b.Square(images[len(images)-1])))
	g := b.Grad(loss, weights...)
	for i, w := range weights {
		b.Output(fmt.Sprint("g", i), g[i])
		if r.IntN(2) == 0 {
			b.Assign(w, b.Sub(w, g[i]))
		}
	}
	b.Output("loss", loss)
	return b.Build()
}

// TestJoinOfRandomNetworks holds plans of random networks to those in which nothing is
// joined: with the options of GPUs, in float32 and with images in bfloat16, and with those of
// CPUs.
func TestJoinOfRandomNetworks(t *testing.T) {
	fewer := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 12))
		g, err := siamese(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{joinAll, onCPU} {
			tol := 1e-5
			switch {
			case seed%3 == 1:
				o.Apart, o.Join = 512, 1024
			case seed%3 == 2 && o.WeightsLast:
				o.BF16Images, tol = true, 2e-2 // sums of gradients are rounded, and what is assigned follows
			}
			if fewerSteps(asAlone(t, fmt.Sprint("seed ", seed), g, o, r, tol), g, o) {
				fewer++
			}
		}
	}
	t.Logf("%d of 300 programs have fewer steps", fewer)
	if fewer < 120 {
		t.Errorf("%d of 300 programs have fewer steps, want more", fewer)
	}
}

// fewerSteps says whether a plan has fewer steps than one in which nothing is joined.
func fewerSteps(p *Plan, g *graph.Graph, o Options) bool {
	o.Join = 0
	return len(p.Steps) < len(New(g, o).Steps)
}
