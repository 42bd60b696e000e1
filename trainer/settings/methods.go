package settings

import (
	"fmt"
	"strings"

	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/method/bism"
	"ebtrain/trainer/method/cd"
	"ebtrain/trainer/method/fisher"
	"ebtrain/trainer/method/lebm"
	"ebtrain/trainer/method/lm"
	"ebtrain/trainer/method/nce"
	"ebtrain/trainer/method/sm"
	"ebtrain/trainer/method/sngan"
	"ebtrain/trainer/method/vae"
	"ebtrain/trainer/method/vages"
)

// methods is the list of training methods, one line each. The first is the
// default.
var methods = []algo.Method{
	bidvl.Method(),
	bism.Method(),
	sm.Method(),
	cd.Method(),
	nce.Method(),
	vages.Method(),
	fisher.Method(),
	lebm.Method(),
	lm.Method(),
	vae.Method(),
	sngan.Method(),
}

// Methods are the training methods.
func Methods() []algo.Method { return methods }

// MethodNames are the values of --algo.
func MethodNames() []string {
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.Name
	}
	return names
}

// Method is the method of that name.
func Method(name string) (algo.Method, error) {
	for _, m := range methods {
		if m.Name == name {
			return m, nil
		}
	}
	return algo.Method{}, fmt.Errorf("unknown --algo %q: this build has %s", name, strings.Join(MethodNames(), ", "))
}

// MethodOf is the method that has a preset of that name.
func MethodOf(preset string) (algo.Method, error) {
	for _, m := range methods {
		for _, p := range m.Presets {
			if p.Name == preset {
				return m, nil
			}
		}
	}
	return algo.Method{}, fmt.Errorf("unknown preset %q: want one of %s", preset, strings.Join(PresetNames(""), ", "))
}

// PresetNames are the names of the presets of a method or, if that is "", of all.
func PresetNames(method string) (names []string) {
	for _, m := range methods {
		for _, p := range m.Presets {
			if method == "" || m.Name == method {
				names = append(names, p.Name)
			}
		}
	}
	return names
}
