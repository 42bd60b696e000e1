package algotest

import (
	"errors"
	"fmt"
	"strings"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// capability is something that a model can do besides training.
type capability struct {
	name  string
	check func(user) error
}

// modes are those of the graphs that programs ask for.
var modes = []nn.Mode{nn.BatchStats, nn.Eval}

func eachMode(f func(nn.Mode) error) error {
	var errs []error
	for _, mode := range modes {
		if err := f(mode); err != nil {
			errs = append(errs, fmt.Errorf("mode %d: %w", mode, err))
		}
	}
	return errors.Join(errs...)
}

// nothing is to be set before a plan runs.
func nothing(exec.Vars) error { return nil }

// capabilities are what m can do.
func capabilities(m algo.Model) (all []capability) {
	add := func(name string, check func(u user) error) { all = append(all, capability{name, check}) }
	if s, ok := m.(algo.Sampler); ok {
		add("samples", func(u user) error {
			return eachMode(func(mode nn.Mode) error {
				plan, err := s.Sample(mode, samples)
				return u.draws(plan, err, u.pictures(), nothing)
			})
		})
	}
	if s, ok := m.(algo.Drawn); ok {
		add("samples that are draws", func(u user) error {
			return eachMode(func(mode nn.Mode) error {
				plan, err := s.SampleDrawn(mode, samples)
				return u.draws(plan, err, u.pictures(), nothing)
			})
		})
	}
	if s, ok := m.(algo.Primed); ok {
		add("samples without the prior", func(u user) error {
			return eachMode(func(mode nn.Mode) error {
				plan, err := s.SampleNormal(mode, samples)
				return u.draws(plan, err, u.pictures(), nothing)
			})
		})
	}
	if s, ok := m.(algo.Reconstructor); ok {
		add("reconstructs", func(u user) error {
			return eachMode(func(mode nn.Mode) error {
				g, err := s.Reconstruct(mode, samples)
				return u.looks(g, err, map[string][]int{algo.OutputRecon: u.pictures()})
			})
		})
	}
	if s, ok := m.(algo.Energetic); ok {
		add("energies", func(u user) error {
			return eachMode(func(mode nn.Mode) error {
				g, err := s.Energies(mode, samples)
				return u.looks(g, err, map[string][]int{algo.OutputLogit: {samples, 1}, algo.OutputEnergy: {samples, 1}})
			})
		})
	}
	if s, ok := m.(algo.Conditional); ok {
		add("samples of given latents", func(u user) error { return given(u, s) })
	}
	if s, ok := m.(algo.Literate); ok {
		add("reads", func(u user) error { return literate(u, s) })
	}
	if s, ok := m.(algo.Recollecting); ok {
		add("recollects", func(u user) error { return recollects(u, s) })
	}
	if s, ok := m.(algo.Normalised); ok {
		add("log Z", func(u user) error { return normalises(u, s) })
	}
	if s, ok := m.(algo.Criticised); ok {
		add("divergences", func(u user) error {
			g, err := s.Divergence(samples)
			return u.looks(g, err, map[string][]int{algo.OutputEstimate: {samples}, algo.OutputTruth: {samples}})
		})
	}
	if s, ok := m.(algo.Bilevel); ok {
		add("hypergradient", func(u user) error { return hypergradient(u, s) })
	}
	return append(all, outputs(m)...)
}

// outputs are the capabilities that are one graph with one output.
func outputs(m algo.Model) (all []capability) {
	add := func(name, output string, build func(n int) (*graph.Graph, error), dims func(user) []int) {
		all = append(all, capability{name, func(u user) error {
			g, err := build(samples)
			return u.looks(g, err, map[string][]int{output: dims(u)})
		}})
	}
	row := func(user) []int { return []int{samples} }
	if s, ok := m.(algo.Encoder); ok {
		add("codes", algo.OutputCode, s.Encode, func(user) []int { return []int{samples, anySize} })
	}
	if s, ok := m.(algo.Scored); ok {
		add("scores", algo.OutputScore, s.Score, user.pictures)
	}
	if s, ok := m.(algo.FisherScored); ok {
		add("fisher losses", algo.OutputFisher, s.FisherLoss, row)
	}
	if s, ok := m.(algo.Losing); ok {
		add("losses", algo.OutputLoss, s.Loss, row)
	}
	if s, ok := m.(algo.Inferred); ok {
		add("posterior gaps", algo.OutputGap, s.PosteriorGap, row)
	}
	return all
}

// given: the latents are the plan's first variable, a row for each sample.
func given(u user, s algo.Conditional) error {
	plan, err := s.SampleGiven(samples)
	if err != nil {
		return err
	}
	h := plan.Vars[0]
	if err := finite(h.Name, exec.NewTensor(h.Type), []int{samples, anySize}); err != nil {
		return err
	}
	return u.draws(plan, nil, u.pictures(), func(vars exec.Vars) error {
		return vars.Set(h.Name, ddptest.Tensor(h.Type, ddptest.Noise(1, h.Type.Shape.Len())))
	})
}

// normalises: log Z is known exactly, or estimated with as many chains as asked for.
func normalises(u user, s algo.Normalised) error {
	const chains = 4
	exact, errExact := s.LogZ(algo.LogZOptions{Exact: true})
	if errExact == nil {
		if err := u.draws(exact.Plan, nil, []int{1}, nothing); err != nil || !exact.Exact {
			return errors.Join(err, fmt.Errorf("exactly: Exact is %v", exact.Exact))
		}
	}
	z, err := s.LogZ(algo.LogZOptions{Chains: chains, Steps: 3})
	if err == nil && !z.Exact {
		return u.draws(z.Plan, nil, []int{chains}, nothing)
	}
	if errExact == nil { // what is known need not be estimated
		return nil
	}
	return errors.Join(err, errExact)
}

// hypergradient: J, and for variables of the model an output of their type,
// and nothing is assigned.
func hypergradient(u user, s algo.Bilevel) error {
	g, vars, err := s.Hypergradient(algo.HyperOptions{World: 1, Batch: samples, DType: graph.F32})
	if err != nil {
		return err
	}
	want := map[string][]int{algo.OutputUpper: {}}
	for _, v := range vars {
		want[algo.GradientOf(v.Name)] = v.Type.Shape.Slice()
	}
	if len(g.Assigns()) > 0 || len(g.Outputs()) < 2 {
		return fmt.Errorf("%d variables are assigned, and %d outputs: want none, and J with a gradient", len(g.Assigns()), len(g.Outputs()))
	}
	return compiled(u.backend, g, nil, exec.Options{Vars: u.vars}, func(p exec.Program) error {
		fill(p, algo.InputImages, u.images(100, samples)...)
		fill(p, algo.InputKey, seed, 100, 0)
		u.model.Feeder(p)(2, 0)
		if err := exec.Run(u.ctx, p); err != nil {
			return err
		}
		for _, o := range g.Outputs() {
			dims, ok := want[o.Name]
			if !ok {
				return fmt.Errorf("%q is neither J nor the gradient of one of the variables (%s)", o.Name, strings.Join(u.vars.Names(), ", "))
			}
			if err := finite(o.Name, p.Output(o.Name), dims); err != nil {
				return err
			}
		}
		return nil
	})
}
