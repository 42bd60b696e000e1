package lebm

import (
	"math"
	"strings"
	"testing"

	"ebtrain/trainer/algo"
)

// numbers are a report as its columns have it.
func (r rig) numbers(t *testing.T) (values []float64) {
	t.Helper()
	report := r.stepped(t, 2)
	for _, name := range algo.Names((model{r.cfg}).Report()) {
		values = append(values, report[name])
	}
	return values
}

// A chain whose steps are too long is named in the very step, with its norm.
func TestExplosion(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{same, ""},
		{func(c *Config) { c.PosteriorChain = Chain{Steps: 20, Size: 10} }, "the posterior chain exploded: after 20 transitions ‖z‖/√d is "},
		{func(c *Config) { c.PriorChain = Chain{Steps: 60, Size: 10} }, "the prior chain exploded: after 60 transitions ‖z‖/√d is "},
		{func(c *Config) { c.Prior, c.PosteriorChain = Gaussian, Chain{Steps: 20, Size: 10} }, "the posterior chain exploded"},
	} {
		r := newRig(t, tiny(tt.change))
		got := model{r.cfg}.Diagnose(r.numbers(t))
		if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") || strings.Contains(got, "\n") {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		t.Log(got)
	}
}

func TestDiagnose(t *testing.T) {
	m := model{published(SVHN)}
	report := make([]float64, len(m.Report()))
	for _, tt := range []struct {
		posterior, prior float64
		want             string
	}{
		{3, 2, ""},
		{999, 999, ""},
		{12345, 2, "the posterior chain exploded: after 20 transitions ‖z‖/√d is 1.23e+04, where N(0, I) has 1: lower --posterior-step-size from 0.1, or --lr-generator if all was well for long"},
		{math.NaN(), 2, "the posterior chain exploded: after 20 transitions ‖z‖/√d is beyond any number of float32"},
		{math.NaN(), math.Inf(1), "the prior chain exploded: after 60 transitions ‖z‖/√d is beyond any number of float32, where N(0, I) has 1: lower --prior-step-size from 0.4, or --lr-energy"},
	} {
		report[posteriorNormPlace], report[priorNormPlace] = tt.posterior, tt.prior
		if got := m.Diagnose(report); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	m.cfg.PosteriorChain.Annealed, report[posteriorNormPlace], report[priorNormPlace] = true, 12345, 1
	if got, want := m.Diagnose(report), "has 1: leave --posterior-annealed out, whose first steps are long, or lower --lr-generator if all was well for long"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want its end %q", got, want)
	}
	m.cfg.PosteriorChain.Annealed, report[posteriorNormPlace] = false, 1
	if n := testing.AllocsPerRun(100, func() { m.Diagnose(report) }); n > 0 {
		t.Errorf("looking at a report allocates %v times", n)
	}
}
