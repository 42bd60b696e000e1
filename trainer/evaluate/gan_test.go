package main

import (
	"strings"
	"testing"

	"ebtrain/trainer/method/sngan"
	"ebtrain/trainer/trained"
)

// A GAN has neither reconstructions nor energies: asked for, each is named, and of
// all measures there are none of them.
func TestMeasuresOfGAN(t *testing.T) {
	c := sngan.Method().Presets[0].Config.Clone()
	e := &evaluation{trained: &trained.Run{Model: c.Model()}, takes: c.Model().Takes()}
	e.trained.Settings.Algo = "sngan"
	for measures, want := range map[string]string{
		"rmse":   "--measures rmse of runs/a, a run of --algo sngan: its models give no reconstructions",
		"energy": "--measures energy of runs/a, a run of --algo sngan: its models have no energy of samples alone",
		"loss":   "--measures loss of runs/a, a run of --algo sngan: its models do not have the loss of samples that are not trained on",
	} {
		e.o = options{run: "runs/a", measures: measures}
		if _, err := e.chosen(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", measures, err, want)
		}
	}
	e.o.measures = allMeasures
	all, err := e.chosen()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.Contains("rmse energy loss ll density", m.name) {
			t.Errorf("all measures include %s", m.name)
		}
	}
}
