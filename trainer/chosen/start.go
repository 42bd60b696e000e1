// Package chosen is what a command line says is to be trained: a method, one of its
// presets, its networks, the settings of its own, and whether data fit them. The
// programs that train share it, so that the same flags mean the same to all.
//
// It is a part of the mains. Nothing here keeps state.
package chosen

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/settings"
)

// DefaultSteps are the steps of a run without --preset.
const DefaultSteps = 1000

// PresetHelp is the --preset that lists them all.
const PresetHelp = "help"

// Start is what the flags change: a method, and the settings of one of its
// presets.
type Start struct {
	Method algo.Method
	Preset algo.Preset
}

// Peek finds the values of some flags in a command line before it can be read:
// they decide which other flags there are. A switch that stands alone is "true" if it
// is among switches; a flag that is not there is not in the map. What is wrong is found
// when all of it is read.
func Peek(args, names, switches []string) map[string]string {
	found := map[string]string{}
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "" || arg[0] != '-' {
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case slices.Contains(switches, name) && !has:
			found[name] = "true"
		case slices.Contains(switches, name):
			found[name] = value
		case slices.Contains(names, name):
			if !has && i+1 < len(args) {
				value = args[i+1]
			}
			found[name] = value
		}
	}
	return found
}

// Begin is the start that --algo and --preset name: without --preset the
// method's first preset, and without --algo the method of the preset.
func Begin(method, preset string) (s Start, err error) {
	named := preset != "" && preset != PresetHelp
	if of := settings.PresetNames(method); named && len(of) > 0 && !slices.Contains(settings.PresetNames(""), preset) {
		return s, cliflag.Usage("unknown --preset %q: %s (--preset help describes them)", preset, cliflag.OneOf(preset, of))
	}
	switch {
	case method != "":
		s.Method, err = settings.Method(method)
	case named:
		s.Method, err = settings.MethodOf(preset)
	default:
		s.Method = settings.Methods()[0]
	}
	if err == nil && named {
		if of, e := settings.MethodOf(preset); e == nil && of.Name != s.Method.Name {
			return s, cliflag.Usage("--preset: %s is a preset of --algo %s, not of %s", preset, of.Name, s.Method.Name)
		}
		s.Preset, err = s.Method.Preset(preset)
	}
	if err != nil {
		return s, &cliflag.UsageError{Err: err}
	}
	if !named {
		s.Preset = s.Method.Presets[0]
		s.Preset.Steps = DefaultSteps
	}
	return s, nil
}

// WithNet is s with the networks called net: of a preset that --preset names
// only they change, and without one the settings are those of the first preset
// that has them.
func (s Start) WithNet(net string, named bool) (Start, error) {
	if !slices.Contains(s.Method.Nets, net) {
		return s, cliflag.Usage("unknown --net %q: want one of %s", net, strings.Join(s.Method.Nets, ", "))
	}
	if !named {
		i := slices.IndexFunc(s.Method.Presets, func(p algo.Preset) bool { return p.Net == net })
		if i >= 0 {
			s.Preset = s.Method.Presets[i]
			s.Preset.Steps = DefaultSteps
			return s, nil
		}
	}
	s.Preset.Net, s.Preset.Config = net, s.Preset.Config.Clone()
	return s, s.Preset.Config.(algo.Networked).SetNet(net)
}

// ListPresets shows the presets of the method of that name, or of all, a line
// each.
func ListPresets(method string, out io.Writer) error {
	for _, m := range settings.Methods() {
		if method != "" && m.Name != method {
			continue
		}
		for _, p := range m.Presets {
			if _, err := fmt.Fprintf(out, "%-21s %s; batch %d, %d steps\n", p.Name, p.About, p.Batch, p.Steps); err != nil {
				return err
			}
		}
	}
	return cliflag.ErrHelp
}
