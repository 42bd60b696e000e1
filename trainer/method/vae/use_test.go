package vae

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

// Codes are the means of Q, and reconstructions what G makes of them, by the
// statistics that are asked for; the variances of Q are in neither.
func TestUse(t *testing.T) {
	const n = 3
	cfg := *small(nets.ConvFamily, 4)
	net, err := cfg.build()
	if err != nil {
		t.Fatal(err)
	}
	_, specs, err := cfg.Step(1, n)
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, specs, testSeed); err != nil {
		t.Fatal(err)
	}
	in := ddptest.Values{algo.InputImages: ddptest.Noise(1, n*cfg.Takes().Shape.Len())}
	outputs := func(g *graph.Graph, err error) ddptest.Values {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, vars, nil, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, mode := range []nn.Mode{nn.Eval, nn.BatchStats} {
		c := nn.NewContext(mode, 1)
		mean, _ := net.Inference(c, cfg.images(c, n))
		c.Output("mean", mean)
		in["h"] = outputs(c.Commit())["mean"]
		c = nn.NewContext(mode, 1)
		c.Output("made", net.Generator(c, c.Input("h", graph.T(graph.F32, n, cfg.Net.Latent))))
		want := outputs(c.Commit())["made"]
		if err := ddptest.Near(outputs(cfg.Reconstruct(mode, n))[algo.OutputRecon], want, 1e-6); err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
		if mode == nn.Eval {
			if err := ddptest.Near(outputs(cfg.Encode(n))[algo.OutputCode], in["h"], 0); err != nil {
				t.Errorf("codes: %v", err)
			}
		}
	}
}

// The loss of a picture is the same beside any others: it is of running statistics, so
// that checkpoints are told apart by it whatever the batch is.
func TestLossOfOnePicture(t *testing.T) {
	cfg := *small(nets.ConvFamily, 4)
	_, specs, err := cfg.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, specs, testSeed); err != nil {
		t.Fatal(err)
	}
	size := cfg.Takes().Shape.Len()
	loss := func(n int) float64 {
		g, err := cfg.Loss(n)
		if err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: ddptest.Noise(1, n*size), algo.InputKey: {testSeed, 0, 0}})
		if err != nil {
			t.Fatal(err)
		}
		return out[algo.OutputLoss][0]
	}
	if one, three := loss(1), loss(3); !(math.Abs(one-three) <= 1e-5*math.Abs(one)) {
		t.Errorf("alone a picture has a loss of %v, beside others of %v", one, three)
	}
}
