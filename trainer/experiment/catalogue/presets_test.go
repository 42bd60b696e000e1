package catalogue

import (
	"maps"
	"slices"
	"testing"

	"ebtrain/trainer/setting"
	"ebtrain/trainer/settings"
)

// ofTrain are flags of rows that no method has.
var ofTrain = []string{"steps", "batch", "log-every", "deterministic"}

// TestAllPresets: every preset of every method is run at full size, and nothing else;
// what makes a step smaller is a batch that the row shows.
func TestAllPresets(t *testing.T) {
	e := fullSize()
	var want []string
	for _, m := range settings.Methods() {
		for _, p := range m.Presets {
			want = append(want, p.Name)
		}
	}
	var got []string
	for _, r := range e.Rows {
		got = append(got, r.Preset)
		for name := range r.Flags {
			if name != "batch" {
				t.Errorf("%s has --%s", r.Name, name)
			}
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("presets.go does not have the preset %s: a new one needs its place there, and the published report is written anew with it (experiment report --all)", name)
		}
	}
	for i, name := range got {
		if !slices.Contains(want, name) || slices.Contains(got[:i], name) {
			t.Errorf("presets.go has %s, which is no preset, or is there twice", name)
		}
	}
}

// TestPresets: train has every preset, and its method every flag with that value.
func TestPresets(t *testing.T) {
	for _, e := range All() {
		if e.Compute != nil {
			continue
		}
		for _, r := range e.Rows {
			m, err := settings.MethodOf(r.Preset)
			if err != nil {
				t.Errorf("%s %s: %v", e.Name, r.Name, err)
				continue
			}
			preset, err := m.Preset(r.Preset)
			if err != nil {
				t.Fatal(err)
			}
			var set setting.Set
			preset.Config.Clone().Settings(&set)
			flags := maps.Clone(e.Flags)
			maps.Copy(flags, r.Flags)
			for name, value := range flags {
				if slices.Contains(ofTrain, name) {
					continue
				}
				i := slices.IndexFunc(set.All(), func(s *setting.Setting) bool { return s.Name == name })
				if i < 0 {
					t.Errorf("%s %s: --algo %s has no --%s", e.Name, r.Name, m.Name, name)
				} else if err := set.All()[i].Set(value); err != nil {
					t.Errorf("%s %s: --%s=%s: %v", e.Name, r.Name, name, value, err)
				}
			}
			if err := set.Finish(); err != nil {
				t.Errorf("%s %s: %v", e.Name, r.Name, err)
			}
		}
	}
}
