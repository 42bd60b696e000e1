package lebm

import (
	"errors"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/trainer/model/nn"
)

// The logits of a vocabulary are the largest values of a step of sentences: they are
// there once, and their gradient takes their place, however long the posterior's chain
// is, which has both in every transition.
func TestLogitsAreNotKept(t *testing.T) {
	const n, length = 16, 12
	peak := func(words, transitions int) int64 {
		cfg := tinyText(t, func(c *Config) {
			c.Text.Embed, c.Text.Hidden, c.PosteriorChain.Steps = 1, 1, transitions // weights are small beside logits
			c.Text.Words = strings.TrimSpace(strings.Repeat("w ", words))
		})
		g, specs, err := reader{cfg}.StepOf(length, 1, n)
		if err != nil {
			t.Fatal(err)
		}
		backend, err := cpu.New(cpu.Config{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		vars := backend.NewVars()
		if err := nn.Initialise(vars, specs, 1); err != nil {
			t.Fatal(err)
		}
		p, err := backend.Compile(g, exec.Options{Name: "step", Vars: vars})
		if err != nil {
			t.Fatal(err)
		}
		bytes := p.Stats().PeakBytes
		if err := errors.Join(p.Close(), backend.Close()); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	const few, many = 1000, 5000
	logits := float64(4 * n * (length - 1) * (many - few))
	for _, transitions := range []int{1, 6} {
		if times := float64(peak(many, transitions)-peak(few, transitions)) / logits; times > 1.5 {
			t.Errorf("with %d transitions a larger vocabulary takes %.2f times its logits", transitions, times)
		} else {
			t.Logf("%d transitions: %.2f times the logits", transitions, times)
		}
	}
}
