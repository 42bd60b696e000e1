// Package algotest is the conformance suite of training methods: what programs
// take for granted of every algo.Method, whatever it trains.
//
// Of a method, it tests that presets fit the data that they are published with,
// that settings and JSON give back what they were given, and that a clone shares
// nothing. Of a model, at tiny sizes: that each setting has an effect or is refused; the inputs and the report of its step; that
// 1, 2 and 4 ranks agree, in float64, and have equal bits with virtual shards; that a step
// that was planned for the cpu does what its graph says;
// that a run that is resumed is the one that was not interrupted; and of each
// thing more that it can do that the graph has the documented outputs and changes
// nothing of the model.
//
// What a step computes is for the method's own tests.
package algotest

import (
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
)

// Case is a configuration small enough to take many steps of.
type Case struct {
	Name   string
	Config algo.Config // fitted and valid; cloned before use
	// Model is what is tested instead of the config's, where that has no sizes small
	// enough.
	Model algo.Model
}

// Run tests a method. Published are the data of each preset, by its name.
func Run(t *testing.T, m algo.Method, published map[string]data.Schema, cases ...Case) {
	for _, c := range ofMethod {
		t.Run(c.name, func(t *testing.T) { fails(t, c.check(m, published)) })
	}
	for _, one := range cases {
		t.Run(one.Name, func(t *testing.T) {
			if one.Model == nil {
				one.Model = one.Config.Clone().Model()
				t.Run("rates decay", func(t *testing.T) { fails(t, decays(t.Context(), one.Config)) })
				t.Run("rates warm up", func(t *testing.T) { fails(t, warms(t.Context(), one.Config)) })
				t.Run("gradients are clipped", func(t *testing.T) { fails(t, clips(t.Context(), one.Config)) })
				t.Run("settings have effects", func(t *testing.T) { fails(t, effective(m, one.Config)) })
			}
			r := newRig(t.Context(), one.Model)
			if _, _, err := one.Model.Step(1, r.batch()); err != nil {
				t.Fatal(err) // what follows would say the same
			}
			fails(t, sameVariables(one.Model, r.batch()))
			for name, l := range r.lengths() {
				for _, c := range ofModel {
					t.Run(name+c.name, func(t *testing.T) { fails(t, c.check(l)) })
				}
			}
			can(t, r)
		})
	}
}

// can checks all that a trained model can do.
func can(t *testing.T, r rig) {
	all := capabilities(r.model)
	if len(all) == 0 {
		return
	}
	u, err := r.trained(newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) { fails(t, u.use(c)) })
	}
}

func newBackend(t *testing.T) exec.Backend {
	t.Helper()
	b, err := oneThread()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fails(t, b.Close()) })
	return b
}

func fails(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// ofMethod are the checks of a method. All checks are functions that say what is
// wrong, so that tests can give them what is.
var ofMethod = []struct {
	name  string
	check func(algo.Method, map[string]data.Schema) error
}{
	{"presets have names", names},
	{"presets build", eachPreset(builds)},
	{"presets fit other data", eachPreset(fitsOthers)},
	{"settings go round", eachPreset(goesRound)},
	{"settings have a learning rate", eachPreset(hasRate)},
	{"settings arrive", eachPreset(arrive)},
	{"settings have ranges", eachPreset(refuses)},
	{"clones share nothing", eachPreset(shares)},
}

// ofModel are the checks of a model.
var ofModel = []struct {
	name  string
	check func(rig) error
}{
	{"inputs", rig.inputs},
	{"stages", rig.chains},
	{"draws", rig.namesDraws},
	{"report", rig.report},
	{"stop", rig.stops},
	{"same twice", rig.repeats},
	{"ranks agree", rig.ranksAgree},
	{"as written", rig.asWritten},
	{"resumes", rig.resumes},
	{"same bits on ranks", rig.sameBits},
}
