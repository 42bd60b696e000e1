package main

import (
	"path/filepath"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/method/lebm"
	"ebtrain/trainer/stepbench/golden"
)

// method is a training method whose step is compared with a peer's.
type method struct {
	file string // of workload/testdata
	step golden.Step
}

func methods(t *testing.T) []method {
	return []method{{"lebm.json", lebmPicturesGolden(t)}}
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

// Two steps of each method against what PyTorch computes.
func TestAgainstPeers(t *testing.T) {
	for _, m := range methods(t) {
		t.Run(m.file, func(t *testing.T) { m.step.Check(t, filepath.Join("workload", "testdata", m.file)) })
	}
}
