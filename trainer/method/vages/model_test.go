package vages

import (
	"testing"

	"ebtrain/trainer/algo"
)

// A model has what its training has made: codes and a posterior's divergence only where
// a posterior is fitted, and all else whatever stands for the score.
func TestWhatIsTrained(t *testing.T) {
	for _, e := range estimators() {
		m := modelOf(tinyUnits(func(c *Config) { c.Estimator = e }))
		if _, ok := m.(algo.Inferred); ok != (e == Variational) {
			t.Errorf("%s: measures a posterior's divergence: %v", e, ok)
		}
		if _, ok := m.(algo.Encoder); ok != (e == Variational) {
			t.Errorf("%s: has codes: %v", e, ok)
		}
		if _, ok := m.(interface {
			algo.Sampler
			algo.Energetic
			algo.Scored
			algo.Normalised
			algo.FisherScored
			algo.Losing
			algo.Grouped
			algo.Diagnosing
		}); !ok {
			t.Errorf("%s: %T lacks what every machine can do", e, m)
		}
	}
	m := modelOf(tinyNetworks(func(*Config) {}))
	if _, ok := m.(interface {
		algo.Sampler
		algo.Conditional
		algo.Encoder
		algo.Inferred
		algo.Losing
		algo.Grouped
		algo.Diagnosing
	}); !ok {
		t.Errorf("%T lacks what every deep model can do", m)
	}
}

func modelOf(c Config) algo.Model { return c.Model() }
