package lebm

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// The posterior's chain of long sentences runs before the step: a program of one
// transition, K₁ times, with its state in variables of the rank's own. A first program
// draws where it begins and the noise of all transitions, by the names that they have
// in the step; so the latents are those of the step but for rounding.

// Variables of the chain.
const (
	varLatents = "latents" // (n, d)
	varNoise   = "noise"   // (n, K₁, d), of all transitions
	varDone    = "done"    // transitions
)

// inference is the state of the chain.
type inference struct{ z, noise, done graph.ID }

// inferenceNet is the scope of the variables: those of a step, and of a trained model
// others for each number of samples.
func (l latents) inferenceNet(n int) string {
	if l.Mode == nn.Eval {
		return fmt.Sprintf("%sinference of %d", chain.Prefix, n)
	}
	return "inference"
}

// inference is that of n samples.
func (l latents) inference(n int) (s inference) {
	l.Context.Scope(l.inferenceNet(n), func() {
		d := l.cfg.Net.Latent
		s.z = l.Scratch(varLatents, graph.D(n, d), nil)
		s.noise = l.Scratch(varNoise, graph.D(n, l.cfg.PosteriorChain.Steps, d), nil)
		s.done = l.Scratch(varDone, graph.D(), nil)
	})
	return s
}

// keep gives variables of the chain of n samples new values.
func (l latents) keep(n int, values map[string]graph.ID) {
	l.Context.Scope(l.inferenceNet(n), func() {
		for _, name := range []string{varLatents, varNoise, varDone} {
			if v, ok := values[name]; ok {
				l.Update(name, v)
			}
		}
	})
}

// begin draws the start of the chain and its noise.
func (l latents) begin(key graph.ID, n int) {
	s, d := l.inference(n), l.cfg.Net.Latent
	noise := make([]graph.ID, l.cfg.PosteriorChain.Steps)
	for i := range noise {
		noise[i] = l.Reshape(l.draw(key, posteriorPlace+1+i, n), graph.D(n, 1, d))
	}
	l.keep(n, map[string]graph.ID{varLatents: l.draw(key, posteriorPlace, n), varNoise: l.Concat(1, noise...), varDone: l.Zeros(l.Type(s.done))})
}

// infer takes one transition of the samples x.
func (l latents) infer(x graph.ID, n int) {
	s := l.inference(n)
	noise := l.Type(s.noise)
	if l.Err() != nil {
		return
	}
	now := l.Equal(l.Iota(noise, 1), l.Reshape(s.done, graph.D(1, 1, 1)))
	xi := l.Sum(l.Mul(now, s.noise), 1)
	next := l.cfg.PosteriorChain.nextOf(l.Context, s.z, l.posteriorSlope(x, s.z), xi, s.done)
	l.keep(n, map[string]graph.ID{varLatents: l.StopGrad(next), varDone: l.Shift(s.done, 1)})
}

// Stages are the posterior's chain, where it is not in the step.
func (r reader) Stages(length, world, batch int) ([]chain.Stage, error) {
	if !r.cfg.Text.Staged {
		return nil, nil
	}
	stages, _, err := r.chain(func() *nn.Context { return nn.NewContext(nn.Train, world) }, length, batch)
	return stages, err
}

// Inferring are those of a trained model, before Recon.
func (r reader) Inferring(length, n int) ([]chain.Stage, []nn.Variable, error) {
	if !r.cfg.Text.Staged {
		return nil, nil, nil
	}
	return r.chain(func() *nn.Context { return nn.NewContext(nn.Eval, 1) }, length, n)
}

// chain is both stages, each in a context of its own, and the variables of their state.
func (r reader) chain(context func() *nn.Context, length, batch int) (all []chain.Stage, state []nn.Variable, err error) {
	begin, infer := newReading(context(), r.cfg, length, batch), newReading(context(), r.cfg, length, batch)
	begin.begin(begin.key, batch)
	infer.infer(infer.x, batch)
	all = []chain.Stage{{Name: "begin", Times: 1}, {Name: "infer", Times: r.cfg.PosteriorChain.Steps}}
	for i, s := range []*step{begin, infer} {
		if all[i].Graph, err = s.Commit(); err != nil {
			return nil, nil, fmt.Errorf("lebm: %w", err)
		}
	}
	for _, v := range infer.Variables() {
		if v.Role == nn.Scratch {
			state = append(state, v)
		}
	}
	return all, state, nil
}

var _ algo.Staged = reader{}
