package chosen

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/setting"
	"ebtrain/trainer/settings"
)

// Define adds to fs the flags of what is trained, which change to and preset, with s as
// their defaults, and those of the method's own settings, which change the configuration
// that it returns.
func (s Start) Define(fs *pflag.FlagSet, to *settings.Settings, preset *string) (algo.Config, *setting.Set) {
	fs.StringVar(&to.Algo, "algo", s.Method.Name, "training method: "+strings.Join(settings.MethodNames(), ", ")+"; the flags below are those of this one; help says what each is")
	fs.StringVar(preset, "preset", "", "settings of an experiment of the paper, which other flags change; help lists them")
	if nets := s.Method.Nets; len(nets) > 0 {
		fs.StringVar(&to.Net, "net", s.Preset.Net, "networks: "+strings.Join(nets, ", ")+", with the settings that the paper uses for them; the flags below are those of these")
	}
	fs.StringVar(&to.Split, "split", "train", "split of the data set to train on")
	fs.BoolVar(&to.Flip, "flip", s.Preset.Flip, "mirror pictures left to right at random")
	fs.IntVar(&to.Batch, "batch", s.Preset.Batch, "samples per step over all ranks")
	fs.Uint64Var(&to.Seed, "seed", 1, "seed of everything that is random")
	c := s.Preset.Config.Clone()
	return c, define(fs, c)
}

// define adds the flags of a method's own settings, which change c.
func define(fs *pflag.FlagSet, c algo.Config) *setting.Set {
	own := &setting.Set{}
	c.Settings(own)
	for _, s := range own.All() {
		f := fs.VarPF(s, s.Name, "", s.Help)
		if s.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	return own
}

// Elsewhere says of an unknown flag which other methods have it; any other error
// is passed on.
func Elsewhere(method string, err error) error {
	unknown, ok := errors.AsType[*cliflag.UnknownFlagError](err)
	if !ok {
		return err
	}
	var others []string
	for _, m := range settings.Methods() {
		presets := presetsWith(m, unknown.Name)
		if unknown.Name == "net" {
			presets = m.Nets
		}
		if m.Name == method && len(presets) > 0 {
			return cliflag.Usage("--%s is a setting of --preset %s, and what is chosen here has none of that name", unknown.Name, setting.Choices(presets))
		}
		if len(presets) > 0 {
			others = append(others, m.Name)
		}
	}
	if len(others) == 0 {
		return err
	}
	return cliflag.Usage("--%s is a setting of --algo %s, and --algo %s has none of that name", unknown.Name, setting.Choices(others), method)
}

// presetsWith are the names of a method's presets that have a setting of that name.
func presetsWith(m algo.Method, name string) (with []string) {
	for _, p := range m.Presets {
		var own setting.Set
		p.Config.Clone().Settings(&own)
		if slices.ContainsFunc(own.All(), func(s *setting.Setting) bool { return s.Name == name }) {
			with = append(with, p.Name)
		}
	}
	return with
}

// Groups are the groups of the method's own settings, in order, after the choice
// of the method.
func Groups(all []*setting.Setting) []cliflag.Group {
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
