package job

import (
	"errors"
	"fmt"
	"log/slog"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
)

// Judge is what evaluation asks of a model.
type Judge interface {
	// Judge builds, for batch images, their reconstructions and energies.
	Judge(mode nn.Mode, batch int) (*graph.Graph, error)
}

// Trained is a model read back from the newest checkpoint of a run directory.
type Trained struct {
	Model    Model
	Settings Settings
	Config   rundir.Config
	State    ckpt.State
	Vars     exec.Vars
}

// LoadTrained reads the run at path onto a device.
func LoadTrained(path string, backend exec.Backend, log *slog.Logger) (*Trained, error) {
	config, err := rundir.ReadConfig(path)
	if err != nil {
		return nil, err
	}
	settings, err := ParseSettings(config.Settings)
	if err != nil {
		return nil, err
	}
	model, err := settings.Algorithm()
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
	t := &Trained{Model: model, Settings: settings, Config: config, State: state, Vars: backend.NewVars()}
	return t, t.setVariables(newest, groups)
}

func (t *Trained) setVariables(from string, groups map[string][]ckpt.Named) error {
	_, specs, err := t.Model.Step(1, 1)
	if err != nil {
		return err
	}
	return loop.SetVariables(t.Vars, specs, groups, from)
}
