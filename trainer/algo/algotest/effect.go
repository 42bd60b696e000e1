package algotest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/setting"
)

// effective: a setting that is taken changes a step, what it is fed, what it begins from, or
// how samples are drawn. One that changes nothing is to be refused (setting.Idle).
func effective(m algo.Method, config algo.Config) error {
	if err := settingsOf(config.Clone()).Finish(); err != nil {
		return fmt.Errorf("nothing can be said of settings that are refused as they are: %w", err)
	}
	before, err := effectOf(config)
	if err != nil {
		return err
	}
	var errs []error
	for i, one := range settingsOf(config).All() {
		for _, text := range texts(m, one) {
			c, err := with(config, i, text)
			if err != nil || c.Validate() != nil {
				continue // refused
			}
			after, err := effectOf(c)
			if err == nil && reflect.DeepEqual(after, before) {
				err = errors.New("it is taken, and changes nothing")
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("--%s %s: %w", one.Name, text, err))
			}
		}
	}
	return errors.Join(errs...)
}

// texts are some that a setting has not: one of its kind, and the words of the presets.
func texts(m algo.Method, one *setting.Setting) []string {
	all := []string{other(one)}
	for _, p := range m.Presets {
		for _, s := range settingsOf(p.Config.Clone()).All() {
			if s.Name == one.Name && s.Type() == "string" && s.String() != one.String() {
				all = append(all, s.String())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// effect is all that a config decides of a run.
type effect struct {
	step   [sha256.Size]byte
	stages []chainEffect // before the step, and of a sampler
	begins [][]float64   // the variables
	fed    []ddptest.Values
}

type chainEffect struct {
	graph [sha256.Size]byte
	times int
}

func effectOf(c algo.Config) (e effect, err error) {
	r := rig{model: c.Clone().Model()}
	g, vars, err := r.model.Step(1, r.batch())
	if err != nil {
		return e, err
	}
	e.step = g.Digest()
	stages, err := algo.StagesOf(r.model, 0, 1, r.batch())
	if s, ok := r.model.(algo.Sampler); ok && err == nil {
		var plan chain.Plan
		plan, err = s.Sample(nn.Eval, samples)
		stages = append(stages, plan.Stages...)
	}
	if err != nil {
		return e, err
	}
	for _, s := range stages {
		e.stages = append(e.stages, chainEffect{s.Graph.Digest(), s.Times})
	}
	for _, v := range vars {
		e.begins = append(e.begins, ddptest.Numbers(v.Value(seed)))
	}
	own := inputsOf(g)
	if err := r.own(own, r.batch()); err != nil {
		return e, err
	}
	p := inputsOnly{in: map[string]*exec.Tensor{}}
	for name, t := range own {
		p.in[name] = exec.NewTensor(t)
	}
	feed := r.model.Feeder(p)
	for epoch, step := range []int64{0, 1, 50_000} { // the last is far into a schedule
		values, err := fed(p, own, feed, step, epoch)
		if err != nil {
			return e, err
		}
		e.fed = append(e.fed, values)
	}
	return e, nil
}

// inputsOnly is a program that is fed, and never run.
type inputsOnly struct {
	exec.Program
	in map[string]*exec.Tensor
}

func (p inputsOnly) Input(name string) *exec.Tensor { return p.in[name] }
