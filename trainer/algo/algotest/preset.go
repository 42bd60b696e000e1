package algotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// names: a preset is told by its name among those of all methods, so its first
// word says the method ("pcd-board" of cd).
func names(m algo.Method, published map[string]data.Schema) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if m.Name == "" || m.About == "" || len(m.Presets) == 0 {
		wrong("want a name, a line about it and presets, got %+v", m)
	}
	seen := map[string]bool{}
	for _, p := range m.Presets {
		first, rest, _ := strings.Cut(p.Name, "-")
		switch {
		case seen[p.Name]:
			wrong("%s: there are two of that name", p.Name)
		case !strings.Contains(first, m.Name) || rest == "":
			wrong("%s: want %s, or a kind of it, a dash and what it trains on", p.Name, m.Name)
		case p.About == "" || p.Batch < 1 || p.Steps < 1:
			wrong("%s: want a line about it, a batch and steps, got %q, %d and %d", p.Name, p.About, p.Batch, p.Steps)
		}
		seen[p.Name] = true
		if _, ok := published[p.Name]; !ok {
			wrong("%s: this test knows no data for it", p.Name)
		}
		if (p.Net != "") != (len(m.Nets) > 0) {
			wrong("%s: its networks are %q of %q", p.Name, p.Net, m.Nets)
		}
		for _, net := range m.Nets {
			if c, ok := p.Config.Clone().(algo.Networked); !ok || c.SetNet(net) != nil {
				wrong("%s does not take --net %s", p.Name, net)
			}
		}
	}
	for name := range published {
		if !seen[name] {
			wrong("there is no preset %s", name)
		}
	}
	return errors.Join(errs...)
}

// fitted is a preset, fitted to the data that it is published with.
type fitted struct {
	algo.Method
	algo.Preset
	data   data.Schema
	config algo.Config
}

func eachPreset(check func(fitted) error) func(algo.Method, map[string]data.Schema) error {
	return func(m algo.Method, published map[string]data.Schema) error {
		var errs []error
		for _, p := range m.Presets {
			f := fitted{m, p, published[p.Name], p.Config.Clone()}
			before := text(p.Config)
			err := errors.Join(f.config.Fit(f.data), f.config.Validate())
			if err == nil && text(p.Config) != before {
				err = errors.New("the preset itself has been fitted")
			}
			if err == nil {
				err = check(f)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
			}
		}
		return errors.Join(errs...)
	}
}

// others are data that a preset need not be published with.
var others = []data.Schema{{C: 1, H: 1, W: 2}, {C: 1, H: 1, W: 7}, {C: 1, H: 28, W: 20}, {C: 1, H: 32, W: 32}, {C: 3, H: 32, W: 32}, {C: 3, H: 64, W: 64}}

// fitsOthers: data that a preset takes give the model its sizes; others are refused.
func fitsOthers(f fitted) error {
	for _, d := range others {
		c := f.Preset.Config.Clone()
		if errors.Join(c.Fit(d), c.Validate()) != nil {
			continue
		}
		if got, want := c.Model().Takes().Shape, graph.D(d.C, d.H, d.W); got != want {
			return fmt.Errorf("it is fitted to data of %v, and takes samples of %v: Fit takes sizes from the data, or refuses them", want, got)
		}
	}
	return nil
}

// text is a config as JSON, or why it has none.
func text(c algo.Config) string {
	raw, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// builds: a preset makes steps of its batch on one rank and on two, with the same
// variables, and its JSON is read back as it is.
func builds(f fitted) error {
	raw, err := json.Marshal(f.config)
	if err != nil {
		return err
	}
	back, err := f.Decode(raw)
	if err != nil {
		return err
	}
	again, err := json.Marshal(back)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, raw) || !reflect.DeepEqual(back, f.config) {
		return fmt.Errorf("%s is read back as %s", raw, again)
	}
	m := f.config.Model()
	if got, want := m.Takes().Shape, graph.D(f.data.C, f.data.H, f.data.W); got != want {
		return fmt.Errorf("takes samples of %v, want %v", got, want)
	}
	var one []nn.Variable
	for _, world := range []int{1, 2} {
		g, vars, err := m.Step(world, f.Batch/world)
		if err != nil {
			return fmt.Errorf("%d ranks: %w", world, err)
		}
		if len(g.Assigns()) == 0 {
			return errors.New("a step changes nothing")
		}
		if one == nil {
			one = vars
		}
		if len(one) != len(vars) {
			return fmt.Errorf("%d variables on one rank, %d on %d", len(one), len(vars), world)
		}
		for i, v := range vars {
			if v.Name != one[i].Name || v.Type != one[i].Type && v.Role != nn.Scratch {
				return fmt.Errorf("variable %s %v of one rank is %s %v on %d", one[i].Name, one[i].Type, v.Name, v.Type, world)
			}
		}
	}
	return nil
}
