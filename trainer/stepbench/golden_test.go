package main

import (
	"path/filepath"
	"slices"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/lebm"
	"ebtrain/trainer/method/vages"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/stepbench/golden"
)

// method is a training method whose step is compared with a peer's.
type method struct {
	file string // of workload/testdata
	step golden.Step
}

func methods(t *testing.T) []method {
	return []method{{"lebm.json", lebmPicturesGolden(t)}, {"vages.json", vagesGolden(t)}, {"lebm_text.json", lebmTextGolden(t)}}
}

// tiny is the model of --net with a config changed.
func tiny[C any](t *testing.T, net string, change func(c C)) trained {
	t.Helper()
	n := nets[net]
	m, err := n.make(&options{net: net, width: n.width, latent: n.latent, batch: n.batch})
	if err != nil {
		t.Fatal(err)
	}
	config := m.(trained).config
	change(config.(C))
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	return trained{config.Model(), config}
}

func lebmPicturesGolden(t *testing.T) golden.Step {
	m := tiny(t, "lebm-pictures", func(c *lebm.Config) {
		c.Net.NGF, c.Net.NEF, c.Net.Latent, c.Net.Channels = 1, 4, 3, 1
		c.PriorChain.Steps, c.PosteriorChain.Steps = 3, 2
		c.Generator.LR, c.Energy.LR = 0.01, 0.02
	})
	return golden.Step{Model: m, Batch: 4, Losses: []string{"recon", "energy"},
		Weight: func(k, n int) []float64 { return golden.Wave(n, k, 0.4, 0) },
		Input:  func(step int, _ string, n int) []float64 { return golden.Wave(n, 50+step, 0.8, 0) },
		Draw: func(step int, d graph.Draw, n int) []float64 {
			return golden.Wave(n, 1000*step+100+langevin(d), 1.2, 0)
		},
	}
}

// langevin is the peer's number of a draw of a chain: the prior's from 0, the
// posterior's, which has places above 1,000, from 500.
func langevin(d graph.Draw) int {
	if d.Sub > 1000 {
		return int(d.Sub) - 1001 + 500
	}
	return int(d.Sub)
}

// lebmTextGolden has sentences of several lengths, and a gradient that is clipped.
func lebmTextGolden(t *testing.T) golden.Step {
	m := tiny(t, "lebm-text", func(c *lebm.Config) {
		c.Text.Embed, c.Text.Hidden, c.Net.Latent, c.Net.NEF = 3, 4, 2, 4
		c.Text.Words, c.Text.Lengths, c.Text.Clip = words(7), []int{6}, 0.5
		c.PriorChain.Steps, c.PosteriorChain.Steps = 3, 2
		c.Generator.LR, c.Energy.LR = 0.01, 0.02
	})
	sentences := [][]float64{{1, 4, 5, 2, 0, 0}, {1, 6, 3, 5, 4, 2}, {1, 5, 2, 0, 0, 0}, {1, 4, 6, 6, 2, 0}}
	lengths := []float64{4, 6, 3, 5}
	return golden.Step{Model: m, Batch: 4, Losses: []string{"recon", "energy"},
		Weight: func(k, n int) []float64 { return golden.Wave(n, k, 0.4, 0) },
		Input: func(step int, name string, n int) []float64 {
			s, l := slices.Clone(sentences), slices.Clone(lengths)
			if step == 1 {
				slices.Reverse(s)
				slices.Reverse(l)
			}
			if name == algo.InputLengths {
				return l
			}
			return slices.Concat(s...)
		},
		Draw: func(step int, d graph.Draw, n int) []float64 {
			if d.Purpose == philox.Dropout {
				return golden.Wave(n, 1000*step+900+int(d.Sub), 0.45, 0.5)
			}
			return golden.Wave(n, 1000*step+100+langevin(d), 1.2, 0)
		},
	}
}

// vagesGolden computes the covariance by slopes along a direction; the peer has it as
// published.
func vagesGolden(t *testing.T) golden.Step {
	m := tiny(t, "vages-mnist", func(c *vages.Config) {
		c.Net.H, c.Net.W, c.Net.Width, c.Net.PosteriorWidth, c.Net.Hidden = 8, 8, 1, 1, 3
		c.LowerSteps, c.Refine = 2, vages.Refine{Steps: 2, Rate: 1e-2, Noise: 0.1}
		c.LR, c.Schedule = 0.01, optim.Constant
	})
	return golden.Step{Model: m, Batch: 4, Losses: []string{"upper", "lower"},
		Weight: func(k, n int) []float64 { return golden.Wave(n, k, 0.4, 0) },
		Input:  func(step int, _ string, n int) []float64 { return golden.Wave(n, 50+step, 0.4, 0.5) },
		Draw: func(step int, d graph.Draw, n int) []float64 {
			return golden.Wave(n, 1000*step+100+particle(d), 1.2, 0)
		},
	}
}

// particle is the peer's number of a draw: noise of pictures from 0, latents from 20,
// and their refinement, which has 1,000 draws a place, from 40; ten numbers a place.
func particle(d graph.Draw) int {
	switch place := 10 * int(d.Sub); d.Purpose {
	case philox.Perturb:
		return place
	case philox.Hidden:
		return 20 + place
	default:
		return 40 + 10*int(d.Sub/1000) + int(d.Sub%1000)
	}
}

// Two steps of each method against what PyTorch computes.
func TestAgainstPeers(t *testing.T) {
	for _, m := range methods(t) {
		t.Run(m.file, func(t *testing.T) { m.step.Check(t, filepath.Join("workload", "testdata", m.file)) })
	}
}
