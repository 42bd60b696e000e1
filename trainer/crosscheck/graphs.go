package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// graphDump is what a case's model can do besides training: outputs by "graph.output", results
// of samplers by "sampler", what these were given by "sampler.given".
type graphDump struct {
	Method  string           `json:"method"`
	Case    testCase         `json:"case"`
	Config  json.RawMessage  `json:"config"`
	Init    map[string]array `json:"init"`
	Images  *array           `json:"images"` // absent of sentences
	Outputs map[string]array `json:"outputs"`
}

// looker runs graphs and samplers over the same variables.
type looker struct {
	*unit
	b    *ref.Backend
	vars exec.Vars
	out  *graphDump
}

// graphs runs all that the model offers. Statistics of batch norms are moved, too: at
// their first values they would not be seen.
func (u *unit) graphs(ctx context.Context) (*graphDump, error) {
	l := &looker{unit: u, b: ref.New(), out: &graphDump{Method: u.method, Case: u.testCase, Config: u.config, Outputs: map[string]array{}}}
	var err error
	if l.vars, err = u.initialised(l.b, running); err != nil {
		return nil, err
	}
	if l.out.Init, err = arraysOf(l.vars, u.specs); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{l.ofPictures, l.ofLatents, l.ofSentences, l.samples, l.normalisers} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return l.out, nil
}

// look runs one graph and keeps these of its outputs.
func (l *looker) look(ctx context.Context, what string, g *graph.Graph, err error, outputs ...string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	p, err := l.b.Compile(g, exec.Options{Name: what, Vars: l.vars})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	l.fill(p, 0, 5)
	if in := p.Input(algo.InputImages); in != nil {
		a := arrayOf(in)
		l.out.Images = &a
	}
	if err := exec.Run(ctx, p); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, name := range outputs {
		o := p.Output(name)
		if o == nil {
			return fmt.Errorf("%s: the graph has no output %q", what, name)
		}
		l.out.Outputs[what+"."+name] = arrayOf(o)
	}
	return nil
}

// ofPictures is what is told of pictures by the model of them alone.
func (l *looker) ofPictures(ctx context.Context) (err error) {
	if m, ok := l.model.(algo.Energetic); ok {
		g, e := m.Energies(nn.Eval, l.Batch)
		err = l.look(ctx, "energies", g, e, algo.OutputEnergy)
	}
	if m, ok := l.model.(algo.FisherScored); ok && err == nil {
		g, e := m.FisherLoss(l.Batch)
		err = l.look(ctx, "fisher", g, e, algo.OutputFisher)
	}
	if m, ok := l.model.(algo.Scored); ok && err == nil {
		g, e := m.Score(l.Batch)
		err = l.look(ctx, "score", g, e, algo.OutputScore)
	}
	if m, ok := l.model.(algo.Losing); ok && err == nil {
		g, e := m.Loss(l.Batch)
		err = l.look(ctx, "loss", g, e, algo.OutputLoss)
	}
	if m, ok := l.model.(algo.Criticised); ok && err == nil {
		g, e := m.Divergence(l.Batch)
		err = l.look(ctx, "critic", g, e, algo.OutputEstimate, algo.OutputTruth)
	}
	return err
}

// ofLatents is what is told of pictures by their latents.
func (l *looker) ofLatents(ctx context.Context) (err error) {
	if m, ok := l.model.(algo.Inferred); ok && l.posterior() {
		g, e := m.PosteriorGap(l.Batch)
		err = l.look(ctx, "gap", g, e, algo.OutputGap)
	}
	if m, ok := l.model.(algo.Encoder); ok && err == nil && l.posterior() {
		g, e := m.Encode(l.Batch)
		err = l.look(ctx, "encode", g, e, algo.OutputCode)
	}
	if m, ok := l.model.(algo.Reconstructor); ok && err == nil {
		g, e := m.Reconstruct(nn.BatchStats, l.Batch)
		if err = l.look(ctx, "recon-batch", g, e, algo.OutputRecon); err == nil {
			g, e = m.Reconstruct(nn.Eval, l.Batch)
			err = l.look(ctx, "recon-eval", g, e, algo.OutputRecon)
		}
	}
	return err
}

// posterior says whether the case's estimator is one that learns a posterior.
func (l *looker) posterior() bool {
	e, ok := l.Over["Estimator"]
	return !ok || e == "variational"
}

// ofSentences is what is told of sentences.
func (l *looker) ofSentences(ctx context.Context) (err error) {
	if m, ok := l.model.(algo.Literate); ok {
		g, e := m.NLL(l.Length, l.Batch)
		err = l.look(ctx, "nll", g, e, algo.OutputLoss, algo.OutputTold)
	}
	if m, ok := l.model.(algo.Recollecting); ok && err == nil && l.Length > 0 {
		g, e := m.Recon(l.Length, l.Batch)
		err = l.look(ctx, "recall", g, e, algo.OutputLoss, algo.OutputBlind)
	}
	return err
}

// samples runs the samplers.
func (l *looker) samples(ctx context.Context) (err error) {
	if m, ok := l.model.(algo.Sampler); ok {
		p, e := m.Sample(nn.Eval, l.Batch)
		err = l.chain(ctx, "sample", p, e, nil)
	}
	if m, ok := l.model.(algo.Conditional); ok && err == nil && l.Length == 0 {
		p, e := m.SampleGiven(l.Batch)
		err = l.chain(ctx, "given", p, e, []float64{0.3, -0.7, 1.1, 0.05, -1.2, 0.6, 0.9})
	}
	return err
}

// normalisers computes log Z, exactly and from both ends.
func (l *looker) normalisers(ctx context.Context) error {
	m, ok := l.model.(algo.Normalised)
	if !ok {
		return nil
	}
	z, err := m.LogZ(algo.LogZOptions{Exact: true})
	if err := l.chain(ctx, "logz-exact", z.Plan, err, nil); err != nil {
		return err
	}
	z, err = m.LogZ(algo.LogZOptions{Chains: 5, Steps: 7})
	if err := l.chain(ctx, "logz-ais", z.Plan, err, nil); err != nil {
		return err
	}
	z, err = m.LogZ(algo.LogZOptions{Chains: 5, Steps: 7, Back: true})
	return l.chain(ctx, "logz-back", z.Plan, err, []float64{0.1, 0.9, 0.4, 0.7, 0.2, 0.6, 0.8})
}

// chain runs a sampler from seed 13. Where something is given, it is the first
// variable, filled with that again and again.
func (l *looker) chain(ctx context.Context, what string, plan chain.Plan, err error, given []float64) (failed error) {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	c, err := chain.New(l.b, l.vars, plan, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { failed = errors.Join(failed, c.Close()) }()
	if err := c.Reset(13); err != nil {
		return err
	}
	if given != nil {
		t := exec.NewTensor(plan.Vars[0].Type)
		for i := range t.Type.Shape.Len() {
			t.SetAt(i, given[i%len(given)])
		}
		if err := l.vars.Set(plan.Vars[0].Name, t); err != nil {
			return err
		}
		l.out.Outputs[what+".given"] = arrayOf(t)
	}
	t, err := c.Continue(ctx, 13, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	l.out.Outputs[what] = arrayOf(t)
	return nil
}
