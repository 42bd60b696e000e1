package lebm

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// model is what a trained model can do. It has no energy of samples, which programs
// could ask for: its E is of latents, and −log p(x) is an integral over them.
type model struct{ cfg Config }

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model {
	switch {
	case c.Text != nil && c.Prior == EBM:
		return primed{reader{*c}}
	case c.Text != nil:
		return reader{*c}
	}
	return model{*c}
}

// program is a transition of a sampler. z is a variable of n latents, and next makes
// its new value, or that of another variable.
func (m model) program(into nn.Variable, next func(l latents, key graph.ID) graph.ID) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	y := next(newLatents(c, m.cfg), c.Input(chain.InputKey, graph.KeyType))
	c.Assign(c.Var(into.Name, into.Type), y)
	g, err := c.Commit()
	if err != nil {
		return nil, fmt.Errorf("lebm: %w", err)
	}
	return g, nil
}

// variables are those of a sampler of n samples: latents, and samples.
func (m model) variables(n int) (z, x nn.Variable) {
	return chain.Var("latents", graph.T(graph.F32, n, m.cfg.Net.Latent)), chain.Var("samples", graph.Type{DType: graph.F32, Shape: m.cfg.shape(n)})
}

// decoding is the stage that makes samples of latents.
func (m model) decoding(z, x nn.Variable) (chain.Stage, error) {
	g, err := m.program(x, func(l latents, _ graph.ID) graph.ID { return l.pictures().decode(l.Context, l.Var(z.Name, z.Type)) })
	return chain.Stage{Name: "generate", Graph: g, Times: 1}, err
}

// Sample draws n samples G(z⁻): the prior's chain, begun at N(0, I), is one program
// run K₀ times.
func (m model) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	z, x := m.variables(n)
	stages, err := m.drawing(z)
	if err != nil {
		return chain.Plan{}, err
	}
	last, err := m.decoding(z, x)
	return chain.Plan{Vars: []nn.Variable{z, x}, Stages: append(stages, last), Out: x.Name}, err
}

// drawing are the stages that draw the latents z from the prior.
func (m model) drawing(z nn.Variable) ([]chain.Stage, error) {
	noise := func(l latents, key graph.ID) graph.ID { return l.Draw(key, graph.Normal, philox.Chain, 0, z.Type) }
	start, err := m.program(z, noise)
	if err != nil {
		return nil, err
	}
	stages := []chain.Stage{{Name: "start", Graph: start, Times: 1}}
	if h := m.cfg.prior(); h.Steps > 0 {
		g, err := m.program(z, func(l latents, key graph.ID) graph.ID {
			now := l.Var(z.Name, z.Type)
			return h.next(l.Context, now, l.priorSlope(now), noise(l, key), h.Size)
		})
		if err != nil {
			return nil, err
		}
		stages = append(stages, chain.Stage{Name: "prior", Graph: g, Times: h.Steps})
	}
	return stages, nil
}

// SampleGiven draws G(z) of given latents z.
func (m model) SampleGiven(n int) (chain.Plan, error) {
	z, x := m.variables(n)
	last, err := m.decoding(z, x)
	return chain.Plan{Vars: []nn.Variable{z, x}, Stages: []chain.Stage{last}, Out: x.Name}, err
}

// inferring starts a graph that looks at n samples, and infers their latents: z⁺, as
// step 0 would draw them.
func (m model) inferring(n int) (l latents, z graph.ID) {
	l = newLatents(nn.NewContext(nn.Eval, 1), m.cfg)
	x := l.Input(algo.InputImages, graph.Type{DType: graph.F32, Shape: m.cfg.shape(n)})
	return l, l.posterior(l.Input(algo.InputKey, graph.KeyType), x)
}

// Reconstruct builds G(z⁺).
func (m model) Reconstruct(_ nn.Mode, n int) (*graph.Graph, error) {
	l, z := m.inferring(n)
	l.Output(algo.OutputRecon, l.pictures().decode(l.Context, z))
	return l.Commit()
}

// Encode builds z⁺. It is where the posterior's chain ends, no mean over it: the
// chain is too short to be at rest, and what G is trained to make of a sample's
// latents is trained on its last.
func (m model) Encode(n int) (*graph.Graph, error) {
	l, z := m.inferring(n)
	l.Output(algo.OutputCode, z)
	return l.Commit()
}
