package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/setting"
	"ebtrain/trainer/settings"
)

// defaultSteps are the steps of a run without --preset.
const defaultSteps = 1000

// presetHelp is the --preset that lists them all.
const presetHelp = "help"

// start is what the flags change: a method, and the settings of one of its
// presets.
type start struct {
	method algo.Method
	preset algo.Preset
}

// first is what decides which other flags there are.
type first struct {
	algo, preset, out string
	resume            bool
}

// peek finds it in a command line. What is wrong there is found when all of it
// is read.
func peek(args []string) (f first) {
	text := map[string]*string{"algo": &f.algo, "preset": &f.preset, "out": &f.out}
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "" || arg[0] != '-' {
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name == "resume" {
			f.resume = !has || value == "true"
		}
		if p := text[name]; p != nil {
			if *p = value; !has && i+1 < len(args) {
				*p = args[i+1]
			}
		}
	}
	return f
}

// begin is the start that --algo and --preset name: without --preset the
// method's first preset, and without --algo the method of the preset.
func begin(method, preset string) (s start, err error) {
	named := preset != "" && preset != presetHelp
	switch {
	case method != "":
		s.method, err = settings.Method(method)
	case named:
		s.method, err = settings.MethodOf(preset)
	default:
		s.method = settings.Methods()[0]
	}
	if err == nil && named {
		if of, e := settings.MethodOf(preset); e == nil && of.Name != s.method.Name {
			return s, cliflag.Usage("--preset: %s is a preset of --algo %s, not of %s", preset, of.Name, s.method.Name)
		}
		s.preset, err = s.method.Preset(preset)
	}
	if err != nil && named && !strings.HasPrefix(err.Error(), "unknown --algo") {
		return s, cliflag.Usage("--preset: %w (--preset help describes them)", err)
	}
	if err != nil {
		return s, &cliflag.UsageError{Err: err}
	}
	if !named {
		s.preset = s.method.Presets[0]
		s.preset.Steps = defaultSteps
	}
	return s, nil
}

// withNet is s with the networks called net: of a preset that --preset names
// only they change, and without one the settings are those of the first preset
// that has them.
func (s start) withNet(net string, named bool) (start, error) {
	if !slices.Contains(s.method.Nets, net) {
		return s, cliflag.Usage("unknown --net %q: want one of %s", net, strings.Join(s.method.Nets, ", "))
	}
	if !named {
		i := slices.IndexFunc(s.method.Presets, func(p algo.Preset) bool { return p.Net == net })
		if i >= 0 {
			s.preset = s.method.Presets[i]
			s.preset.Steps = defaultSteps
			return s, nil
		}
	}
	s.preset.Net, s.preset.Config = net, s.preset.Config.Clone()
	return s, s.preset.Config.(algo.Networked).SetNet(net)
}

// listPresets shows the presets of the method of that name, or of all, a line
// each.
func listPresets(method string, out io.Writer) error {
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

// defineModel adds the flags of the method's own settings.
func (o *options) defineModel(fs *pflag.FlagSet) {
	o.own = &setting.Set{}
	o.model.Settings(o.own)
	for _, s := range o.own.All() {
		f := fs.VarPF(s, s.Name, "", s.Help)
		if s.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// elsewhere says of an unknown flag which other methods have it; any other error
// is passed on.
func elsewhere(method string, err error) error {
	unknown, ok := errors.AsType[*cliflag.UnknownFlagError](err)
	if !ok {
		return err
	}
	var others []string
	for _, m := range settings.Methods() {
		var own setting.Set
		m.Presets[0].Config.Clone().Settings(&own)
		if slices.ContainsFunc(own.All(), func(s *setting.Setting) bool { return s.Name == unknown.Name }) {
			others = append(others, m.Name)
		}
	}
	if len(others) == 0 {
		return err
	}
	return cliflag.Usage("--%s is a setting of --algo %s, and --algo %s has none of that name", unknown.Name, setting.Choices(others), method)
}

// groups are the groups of the method's own settings, in order, after the choice
// of the method.
func groups(all []*setting.Setting) []cliflag.Group {
	out := []cliflag.Group{{Title: setting.Trained, Flags: []string{"algo", "preset", "net"}}}
	for _, s := range all {
		i := slices.IndexFunc(out, func(g cliflag.Group) bool { return g.Title == s.Place })
		if i < 0 {
			i = len(out)
			out = append(out, cliflag.Group{Title: s.Place})
		}
		out[i].Flags = append(out[i].Flags, s.Name)
	}
	return out
}
