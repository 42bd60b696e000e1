package e2e

import (
	"encoding/json"
	"image"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// measured is what evaluate --json prints of a model whose density is known.
type measured struct {
	Step   int64
	Images int
	LL     *float64
	Fisher *float64
	Gap    *float64 `json:"posterior_gap"`
	LogZ   *struct {
		Value   float64
		SE, ESS *float64
		How     string
	} `json:"log_z"`
	Density *struct {
		Picture string
		Inside  float64
	}
	Probe     *float64
	Raw       *float64 `json:"probe_raw"`
	Untrained *float64 `json:"probe_untrained"`
	Samples   int64    `json:"probe_samples"`
}

// evaluate is what a command of evaluate finds.
func (s *site) evaluate(args ...string) (m measured) {
	s.t.Helper()
	e := s.must(append([]string{"evaluate", "--json", "--threads", "1"}, args...)...)
	if err := json.Unmarshal([]byte(e.stdout), &m); err != nil {
		s.t.Fatalf("%v: %s", err, e.stdout)
	}
	return m
}

// TestPoints trains on points of the plane on one rank and two, draws, and measures
// what can be known of such models.
func TestPoints(t *testing.T) {
	long(t)
	s := newSite(t)
	const data = "checkerboard:train=500,test=230"
	for _, preset := range []string{"bism-board-dsm", "sm-board-dsm", "cd-board"} {
		t.Run(preset, func(t *testing.T) {
			s.t = t
			var first measured
			for i, n := range []int{0, 2} {
				out := preset + []string{"-one", "-two"}[i]
				s.must(on(n, []string{"train", "--preset", preset, "--data", data, "--steps", "8", "--ckpt-every", "4", "--samples", "4", "--threads", "1", "--out", out})...)
				s.plot(out + "/samples/step-00000008.png")
				m := s.evaluate("--run", out)
				s.checkPoints(m, out, preset == "bism-board-dsm")
				if i == 0 {
					first = m
				} else if !near(*first.LL, *m.LL) || !near(*first.Fisher, *m.Fisher) || !near(first.LogZ.Value, m.LogZ.Value) {
					t.Errorf("on two ranks LL %v, Fisher %v, log Z %v, on one %v, %v, %v", *m.LL, *m.Fisher, m.LogZ.Value, *first.LL, *first.Fisher, first.LogZ.Value)
				}
			}
			early := s.evaluate("--run", preset+"-one", "--step", "4", "--measures", "ll", "--limit", "50")
			if early.Step != 4 || early.Images != 50 || early.Fisher != nil || early.Density != nil || near(*early.LL, *first.LL) {
				t.Errorf("after 4 steps: %+v", early)
			}
			s.must("sample", "--run", preset+"-one", "--n", "30", "--out", preset+".png")
			s.plot(preset + ".png")
		})
	}
	t.Run("too many to enumerate", func(t *testing.T) {
		s.t = t
		s.must("train", "--preset", "cd-board", "--hidden", "24", "--data", data, "--steps", "2", "--samples", "0", "--threads", "1", "--out", "wide")
		m := s.evaluate("--run", "wide", "--measures", "ll,density", "--ais-chains", "50", "--ais-steps", "100")
		if z := m.LogZ; z == nil || z.SE == nil || !(*z.SE > 0 && *z.SE < 0.2) || !(*z.ESS > 10 && *z.ESS <= 50) || !strings.Contains(z.How, "50 chains of 100 steps") {
			t.Errorf("log Z is %+v", z)
		}
	})
	t.Run("sentences", func(t *testing.T) {
		s.t = t
		for _, c := range []struct {
			args string
			code int
			want string
		}{
			{"evaluate --run wide --measures rmse", 1, `^--measures rmse of wide, a run of --algo cd: its models give no reconstructions`},
			{"evaluate --run wide --measures probe", 1, `a run of --algo cd: its models do not infer latents`},
			{"evaluate --run wide --measures density --picture none", 1, `it is a picture, and --picture is none`},
			{"evaluate --run wide --step 1", 1, `^wide holds no checkpoint of step 1: it has that of step 2`},
			{"evaluate --run wide --ais-chains 0", 2, `^want --ais-chains from 1 to 1048576, got 0`},
			{"evaluate --run wide --data synth", 1, `^synth holds pictures of 3×32×32, and the model of wide takes points of 2 values: give a data set of points of 2 values`},
			{"evaluate --run wide --data gauss:dim=5", 1, `^gauss:dim=5 holds points of 5 values, .*: say gauss:dim=2`},
			{"sample --run wide --out z.png --given checkerboard", 1, `^--given shows samples below pictures, and the samples of wide are points`},
			{"train --data checkerboard --out z", 1, `^--data checkerboard holds points of 2 values, and --net conv32 takes 32x32: give --data of pictures`},
		} {
			checkSentence(t, s.run(strings.Fields(c.args)...), 0, c.code, c.want)
		}
		if e := s.must("evaluate", "--run", "wide", "--measures", "fisher", "--limit", "7"); !strings.HasPrefix(e.stdout, "wide after 2 steps, 7 points of "+data+"/test\n") {
			t.Errorf("want 7 points, got %v", e)
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*(1+math.Abs(b)) }

// checkPoints checks what must be true of any small machine on the checkerboard.
func (s *site) checkPoints(m measured, run string, inferred bool) {
	s.t.Helper()
	if m.Step != 8 || m.Images != 230 || m.LL == nil || m.Fisher == nil || m.LogZ == nil || m.Density == nil || (m.Gap != nil) != inferred || m.Probe != nil {
		s.t.Fatalf("%s: %+v", run, m)
	}
	// No density has a higher likelihood than the data's own, but for chance.
	if !(*m.LL > -20 && *m.LL < math.Ln2) || !strings.Contains(m.LogZ.How, "enumeration") || m.LogZ.SE != nil {
		s.t.Errorf("%s: LL %v, log Z %+v", run, *m.LL, *m.LogZ)
	}
	if want := filepath.Join(run, "samples", "density-step-00000008.png"); m.Density.Picture != want || !(m.Density.Inside > 0.01 && m.Density.Inside < 1.001) {
		s.t.Errorf("%s: density %+v, want %s", run, *m.Density, want)
	}
	if inferred && !(*m.Gap > 0) {
		s.t.Errorf("%s: a posterior's gap of %v", run, *m.Gap)
	}
	s.plot(m.Density.Picture)
}

// plot wants a plot of the plane.
func (s *site) plot(name string) {
	s.t.Helper()
	if size := s.picture(name); size.X < 300 && size.Y < 300 {
		s.t.Errorf("%s is a picture of %v, want a plot", name, size)
	}
}

// TestLatents trains a deep model with latents, probes them and draws with them.
func TestLatents(t *testing.T) {
	long(t)
	s := newSite(t)
	const data = "synth:size=8,train=60,test=40"
	s.must("train", "--preset", "bism-cifar10", "--width", "4", "--depth", "1", "--posterior-width", "4", "--hidden", "3", "--batch", "6",
		"--steps", "2", "--samples", "0", "--threads", "1", "--data", data, "--out", "deep")
	m := s.evaluate("--run", "deep", "--measures", "probe", "--probe-limit", "50", "--limit", "30")
	for name, p := range map[string]*float64{"probe": m.Probe, "probe_raw": m.Raw, "probe_untrained": m.Untrained} {
		if p == nil || !(*p >= 0 && *p <= 1) || !near(*p*30, math.Round(*p*30)) {
			t.Errorf("%s is %v, want an accuracy of 30 pictures", name, p)
		}
	}
	if m.Samples != 50 || m.Images != 30 || m.Gap != nil {
		t.Errorf("got %+v", m)
	}
	if all := s.evaluate("--run", "deep"); all.Probe != nil || all.Gap == nil || all.Images != 40 {
		t.Errorf("all but the probe: got %+v", all)
	}
	table := s.must("evaluate", "--run", "deep", "--measures", "probe")
	if !strings.Contains(table.stdout, "on posterior means (trained on 60 pictures)") {
		t.Errorf("got %v", table)
	}
}

// givenLatents draws with latents of a toy's pictures.
func (s *site) givenLatents(run, data string) {
	s.t.Helper()
	e := s.must("sample", "--run", run, "--given", data, "--n", "4", "--scale", "1", "--out", "below.png")
	if !strings.HasPrefix(e.stdout, "4 samples below the pictures of ") {
		s.t.Errorf("got %v", e)
	}
	const cell = 32 + 2
	if got, want := s.picture("below.png"), image.Pt(3*cell+2, 4*cell+2); got != want {
		s.t.Errorf("samples below their pictures are %v, want %v", got, want)
	}
	s.must("sample", "--run", run, "--given", data, "--split", "val", "--interpolate", "5", "--n", "2", "--scale", "1", "--out", "rows.png")
	if got, want := s.picture("rows.png"), image.Pt(7*cell+2, 2*cell+2); got != want {
		s.t.Errorf("rows between pictures are %v, want %v", got, want)
	}
}
