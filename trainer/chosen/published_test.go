package chosen

import (
	"maps"
	"testing"

	"github.com/spf13/pflag"

	"ebtrain/trainer/experiment/catalogue"
	"ebtrain/trainer/settings"
)

// The flags that experiments give their presets have an effect there, each: a row that was
// published is trained with the same command line again.
func TestPublishedFlagsGoTogether(t *testing.T) {
	rows := 0
	for _, e := range catalogue.All() {
		for _, r := range e.Rows {
			if e.Compute != nil || r.Preset == "" {
				continue
			}
			rows++
			flags := maps.Clone(e.Flags)
			if flags == nil {
				flags = map[string]string{}
			}
			maps.Copy(flags, r.Flags)
			if err := accepted(r.Preset, flags); err != nil {
				t.Errorf("%s, %s: %v", e.Name, r.Name, err)
			}
		}
	}
	if rows < 100 {
		t.Errorf("%d rows", rows)
	}
}

// accepted reports what is wrong with a preset's settings as flags change them.
func accepted(preset string, flags map[string]string) error {
	s, err := Names{Preset: preset, Net: flags["net"]}.Begin()
	if err != nil {
		return err
	}
	fs, of := pflag.NewFlagSet("train", pflag.ContinueOnError), ""
	_, own := s.Define(fs, &settings.Settings{}, &of)
	for name, text := range flags {
		if fs.Lookup(name) == nil { // of train itself
			continue
		}
		if err := fs.Set(name, text); err != nil {
			return err
		}
	}
	return own.Finish()
}
