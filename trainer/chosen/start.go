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

// ListAll is the --algo and the --preset that lists them all.
const ListAll = "help"

// Names are the values of --algo, --preset and --net, "" for those that are not there. They
// decide which other flags there are, and what these are without being said.
type Names struct{ Algo, Preset, Net string }

// PeekNames finds them in a command line before it can be read.
func PeekNames(args []string) Names {
	found := Peek(args, []string{"algo", "preset", "net"}, nil)
	return Names{found["algo"], found["preset"], found["net"]}
}

// Start is what the other flags change: a method, and the settings of one of its presets.
type Start struct {
	Method algo.Method
	Preset algo.Preset
	// Help are the flags that chose them, for --help of the others: "--algo lebm --net
	// lstm", a part of the program as cliflag.Within takes it; "" for none.
	Help string
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

// Begin is the start that they name: without --preset the first preset of the method that
// has the networks, and without --algo the method of the preset. Of a preset that is named,
// --net changes the networks only. A --net of a method that has no choice is left to
// whoever reads the other flags.
func (n Names) Begin() (Start, error) {
	named := n.Preset != "" && n.Preset != ListAll
	s, err := begin(n.Algo, n.Preset, named)
	if err != nil {
		return s, err
	}
	switch {
	case named:
		s.Help = "--preset " + n.Preset
	case n.Algo != "":
		s.Help = "--algo " + n.Algo
	}
	if n.Net == "" || len(s.Method.Nets) == 0 {
		return s, nil
	}
	s.Help = strings.TrimLeft(s.Help+" --net "+n.Net, " ")
	return s.withNet(n.Net, named)
}

// begin is Begin but for the networks. A preset that is not named is not there.
func begin(method, preset string, named bool) (s Start, err error) {
	if of := settings.PresetNames(method); named && len(of) > 0 && !slices.Contains(settings.PresetNames(""), preset) {
		by := "--preset " + ListAll
		if method != "" {
			by = "--algo " + method + " " + by
		}
		return s, cliflag.Listed(by, cliflag.Usage("unknown --preset %q: %s", preset, cliflag.OneOf(preset, of)))
	}
	if method != "" {
		if err := checkAlgo(method); err != nil {
			return s, err
		}
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

// withNet is s with the networks called net.
func (s Start) withNet(net string, named bool) (Start, error) {
	if err := s.checkNet(net); err != nil {
		return s, err
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

// checkAlgo reports an --algo that is none.
func checkAlgo(name string) error {
	if _, err := settings.Method(name); err == nil {
		return nil
	}
	return cliflag.Listed("--algo "+ListAll, cliflag.Usage("unknown --algo %q: %s", name, cliflag.OneOf(name, settings.MethodNames())))
}

// checkNet reports a --net that is none of the method's.
func (s Start) checkNet(net string) error {
	if slices.Contains(s.Method.Nets, net) {
		return nil
	}
	return cliflag.Usage("unknown --net %q: want one of %s", net, strings.Join(s.Method.Nets, ", "))
}

// Check reports an --algo or a --net, as they were read, that is none, as the empty one: s
// has another in its place.
func (s Start) Check(read settings.Settings) error {
	if err := checkAlgo(read.Algo); err != nil {
		return err
	}
	if len(s.Method.Nets) == 0 {
		return nil
	}
	return s.checkNet(read.Net)
}

// ListMethods shows the methods, a line each.
func ListMethods(out io.Writer) error {
	for _, m := range settings.Methods() {
		if _, err := fmt.Fprintf(out, "%-7s %s\n", m.Name, m.About); err != nil {
			return err
		}
	}
	return cliflag.ErrHelp
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
