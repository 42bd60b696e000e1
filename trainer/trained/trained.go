// Package trained is a model that has been trained: read back from the newest
// checkpoint of a run directory (Load), asked what it says of samples (Look), and
// drawn from (Samples).
//
// A Run and a Look belong to one goroutine.
package trained

import (
	"errors"
	"fmt"
	"log/slog"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/settings"
)

// Run is a model read back from the newest checkpoint of a run directory.
type Run struct {
	Model    algo.Model
	Settings settings.Settings
	Config   rundir.Config
	State    ckpt.State
	Vars     exec.Vars
}

// Load reads the run at path onto a device.
func Load(path string, backend exec.Backend, log *slog.Logger) (*Run, error) {
	config, err := rundir.ReadConfig(path)
	if err != nil {
		return nil, err
	}
	s, err := settings.Parse(config.Settings)
	if err != nil {
		return nil, err
	}
	model, err := s.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	dir := rundir.Layout(path).Ckpt()
	newest, err := ckpt.Latest(dir, log)
	if errors.Is(err, ckpt.ErrNone) {
		return nil, fmt.Errorf("%s holds no checkpoint yet: train writes one every --ckpt-every steps and at the end", path)
	}
	if err != nil {
		return nil, err
	}
	state, groups, err := ckpt.Read(newest)
	if err != nil {
		return nil, err
	}
	t := &Run{Model: model, Settings: s, Config: config, State: state, Vars: backend.NewVars()}
	return t, t.setVariables(newest, groups)
}

func (t *Run) setVariables(from string, groups map[string][]ckpt.Named) error {
	_, specs, err := t.Model.Step(1, t.Settings.Batch)
	if err != nil {
		return err
	}
	return loop.SetVariables(t.Vars, specs, groups, from)
}
