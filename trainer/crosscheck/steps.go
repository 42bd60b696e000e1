package main

import (
	"context"
	"encoding/json"
	"errors"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/algo"
)

// stepDump is some training steps of a case: all that went in and all that came out.
type stepDump struct {
	Method  string           `json:"method"`
	Case    testCase         `json:"case"`
	Config  json.RawMessage  `json:"config"`
	Columns []string         `json:"columns"` // of the report
	Init    map[string]array `json:"init"`
	Steps   []oneStep        `json:"steps"`
}

// oneStep is a step: the variables are those after it.
type oneStep struct {
	Images *array           `json:"images"` // absent of sentences
	Report []float64        `json:"report"`
	Vars   map[string]array `json:"vars"`
}

// steps runs the compiled training step, by the backend that is the reference.
func (u *unit) steps(ctx context.Context) (*stepDump, error) {
	if stages, err := algo.StagesOf(u.model, u.Length, 1, u.Batch); err != nil || len(stages) > 0 {
		return nil, errors.Join(err, errors.New("a step in stages is not written"))
	}
	g, _, err := algo.StepOf(u.model, u.Length, 1, u.Batch)
	if err != nil {
		return nil, err
	}
	b := ref.New()
	vars, err := u.initialised(b, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	p, err := b.Compile(g, exec.Options{Name: "step", Vars: vars})
	if err != nil {
		return nil, err
	}
	out := &stepDump{Method: u.method, Case: u.testCase, Config: u.config}
	for _, c := range u.model.Report() {
		out.Columns = append(out.Columns, c.Name)
	}
	if out.Init, err = arraysOf(vars, u.specs); err != nil {
		return nil, err
	}
	feed := u.model.Feeder(p)
	for s := range u.Steps {
		u.fill(p, int64(s), 0)
		feed(int64(s), u.Epoch)
		one, err := u.step(ctx, p, vars)
		if err != nil {
			return nil, err
		}
		out.Steps = append(out.Steps, one)
	}
	return out, nil
}

// step runs the filled program once.
func (u *unit) step(ctx context.Context, p exec.Program, vars exec.Vars) (one oneStep, err error) {
	if in := p.Input(algo.InputImages); in != nil {
		a := arrayOf(in)
		one.Images = &a
	}
	if err := exec.Run(ctx, p); err != nil {
		return one, err
	}
	one.Report = arrayOf(p.Output(algo.OutputReport)).X
	one.Vars, err = arraysOf(vars, u.specs)
	return one, err
}
