// Package trained is a model that has been trained: read back from a checkpoint of
// a run directory (Load), shown samples that it takes (Open, First), asked what it
// says of them (Look), drawn from (Draw), and its samples shown (Picture, Text).
//
// A Run and a Look belong to one goroutine.
package trained

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/settings"
)

// Run is a model read back from a checkpoint of a run directory.
type Run struct {
	Path     string // of the run directory
	Model    algo.Model
	Settings settings.Settings
	Config   rundir.Config
	State    ckpt.State
	Vars     exec.Vars
	Averages bool // the weights are their moving averages
	Ranks    int  // on this machine, that share its memory; 0 is one
}

// Load reads a checkpoint of the run at path onto a device, that of a step or the newest one
// that is whole.
func Load(path string, of Choice, backend exec.Backend, log *slog.Logger) (*Run, error) {
	config, s, model, err := describe(path)
	if err != nil {
		return nil, err
	}
	from, state, groups, err := read(path, of.Step, log)
	if err != nil {
		return nil, err
	}
	if name := ckpt.Name(state.Step); state.ConfigDigest != config.Digest || name != filepath.Base(from) {
		return nil, fmt.Errorf("%s is a checkpoint of another run or step: it holds step %d of the settings %.19s…, and %s has the settings %.19s…",
			from, state.Step, state.ConfigDigest, path, config.Digest)
	}
	if of.Averages {
		if groups[ckpt.Weights], err = averaged(groups, from); err != nil {
			return nil, err
		}
	}
	r := &Run{Path: path, Model: model, Settings: s, Config: config, State: state, Vars: backend.NewVars(), Averages: of.Averages}
	specs, err := r.variables()
	if err != nil {
		return nil, err
	}
	return r, loop.SetVariables(r.Vars, specs, groups, from)
}

// describe is what the run at path is, from its config.json.
func describe(path string) (config rundir.Config, s settings.Settings, model algo.Model, err error) {
	if config, err = rundir.ReadConfig(path); err != nil {
		return config, s, nil, err
	}
	if s, err = settings.Parse(config.Settings); err == nil {
		model, err = s.Build()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return config, s, model, err
}

// Untrained is the run before its first step: the same model with the initial
// values under its seed.
func (r *Run) Untrained(backend exec.Backend) (*Run, error) {
	specs, err := r.variables()
	if err != nil {
		return nil, err
	}
	first := *r
	first.State, first.Vars, first.Averages = ckpt.State{Seed: r.Settings.Seed}, backend.NewVars(), false
	return &first, nn.Initialise(first.Vars, specs, r.Settings.Seed)
}

// variables are those of the model, as one rank has them: some are as long as the
// batch.
func (r *Run) variables() ([]nn.Variable, error) {
	_, specs, err := r.Model.Step(1, r.Settings.Batch)
	return specs, err
}
