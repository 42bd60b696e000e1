package sm

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// The loss of samples that are not trained on is that of the step which would
// train on them.
func TestHeldOutLoss(t *testing.T) {
	for name, cfg := range cases() {
		t.Run(name, func(t *testing.T) {
			const n = 4
			x := samples(cfg, n)
			reports, _ := train(t, cfg, 1, x)
			g, err := cfg.Model().(algo.Losing).Loss(n)
			if err != nil {
				t.Fatal(err)
			}
			_, specs, err := cfg.Model().Step(1, n)
			if err != nil {
				t.Fatal(err)
			}
			vars := ddptest.NewVars()
			if err := nn.Initialise(vars, specs, testSeed); err != nil {
				t.Fatal(err)
			}
			out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputImages: x, algo.InputKey: {testSeed, 0, 0}})
			if err != nil {
				t.Fatal(err)
			}
			each := out[algo.OutputLoss]
			if len(each) != n {
				t.Fatalf("%d losses of %d samples", len(each), n)
			}
			sum := 0.0
			for _, l := range each {
				sum += l / n
			}
			near(t, "loss", []float64{sum}, reports[0][:1], 1e-4)
		})
	}
}
