package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/rundir"
)

// patience bounds every wait: more is a hang.
const patience = 60 * time.Second

// binVariable makes the test binary be the program experiment, with the
// catalogue of the tests; its value is the folder of the other programs.
const binVariable = "EXPERIMENT_OF_TESTS"

var bin string // that folder, made by build

func TestMain(m *testing.M) {
	if dir := os.Getenv(binVariable); dir != "" {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		os.Exit(start(app{catalogue: catalogueOfTests(), bin: dir, self: self}, os.Args[1:]))
	}
	if next, ok := os.LookupEnv(pretendVariable); ok {
		if filepath.Base(os.Args[0]) == "evaluate" {
			os.Exit(pretendToEvaluate(os.Args))
		}
		if err := pretend(next, os.Args); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	code := m.Run()
	if bin != "" {
		if err := os.RemoveAll(bin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// build builds the programs that do the work, once, under the tags of this test.
var build = sync.OnceValue(func() (err error) {
	if bin, err = os.MkdirTemp("", "ebtrain-experiment-"); err != nil {
		return err
	}
	args := []string{"build", "-o", bin + "/"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				args = append(args, "-tags", s.Value)
			}
		}
	}
	for _, p := range []string{"trainer/train", "trainer/evaluate", "trainer/sample", "data/mkshards", "launch/ddplaunch"} {
		args = append(args, "ebtrain/"+p)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
})

// site is the program in an empty folder of experiments.
type site struct {
	t   *testing.T
	app app
	out string
}

func newSite(t *testing.T) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the real programs; left out under -short")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), binVariable+"="+bin)
	return &site{t: t, out: t.TempDir(), app: app{catalogue: catalogueOfTests(), bin: bin, self: self, environ: environ, stderr: os.Stderr}}
}

// run runs a command with --out; the result is what it printed.
func (s *site) run(ctx context.Context, args ...string) (string, error) {
	s.t.Helper()
	var out strings.Builder
	s.app.stdout = &out
	err := s.app.run(ctx, append(args, "--out", s.out))
	return out.String(), err
}

// must runs a command that must end well.
func (s *site) must(args ...string) string {
	s.t.Helper()
	out, err := s.run(s.t.Context(), args...)
	if err != nil {
		s.t.Fatalf("experiment %q: %v\n%s", args, err, out)
	}
	return out
}

// fails runs a command that must end with an error that holds all of want.
func (s *site) fails(args []string, want ...string) string {
	s.t.Helper()
	out, err := s.run(s.t.Context(), args...)
	if err == nil {
		s.t.Fatalf("experiment %q: no error\n%s", args, out)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			s.t.Errorf("experiment %q: %v; want %q", args, err, w)
		}
	}
	return out
}

// losses are the losses of each step of a cell.
func (s *site) losses(elem ...string) []map[string]float64 {
	s.t.Helper()
	records, err := rundir.ReadMetrics(filepath.Join(append([]string{s.out}, append(elem, "metrics.jsonl")...)...))
	if err != nil {
		s.t.Fatal(err)
	}
	var all []map[string]float64
	for _, r := range records {
		all = append(all, r.Losses)
	}
	return all
}

// catalogueOfTests are experiments of seconds: the smallest BiDVL there is.
func catalogueOfTests() []plan.Experiment {
	tiny := func(steps string) map[string]string {
		return map[string]string{"net": "conv32", "width": "4", "latent": "4", "batch": "8", "steps": steps}
	}
	data := &plan.DataSet{Name: "pictures", Builtin: "synth:train=64,val=16,test=24"}
	evaluate := map[string]string{"limit": "16", "batch": "8", "picture": "none"}
	return []plan.Experiment{
		{
			Name: "tiny", About: "All parts of an experiment, small.", Data: data, Seeds: []uint64{1, 2}, Flags: tiny("6"),
			Evaluate: evaluate, Sample: map[string]string{"n": "4"},
			Curves:  []plan.Curve{{Name: "rmse", Measure: "rmse", Every: 3}, {Name: "upper", Loss: "upper"}},
			Columns: []string{"rmse", "upper-first", "step-ms", "cpu-s", "sample-s"},
			Rows: []plan.Row{
				{Name: "plain"},
				{Name: "wild", Flags: map[string]string{"lr": "1e30"}, KnownBad: true},
			},
			Figures:  []plan.Figure{{File: "rmse", Title: "RMSE", X: "steps", Y: "RMSE", Curve: "rmse"}},
			Pictures: []plan.Picture{{Title: "Samples", Glob: "samples.png"}},
		},
		{
			Name: "long", About: "One long enough to be interrupted.", Data: data, Seeds: []uint64{1}, Flags: tiny("120"),
			Evaluate: evaluate, Columns: []string{"rmse"}, Rows: []plan.Row{{Name: "plain"}},
		},
		{
			Name: "broken", About: "One of two rows has a flag that train refuses.", Data: data, Seeds: []uint64{1}, Flags: tiny("2"),
			Evaluate: evaluate, Columns: []string{"rmse"}, Rows: []plan.Row{{Name: "bad", Flags: map[string]string{"beta1": "2"}}, {Name: "good"}},
		},
		{
			Name: "unmeasured", About: "A measure that evaluate does not have.", Data: data, Seeds: []uint64{1}, Flags: tiny("2"),
			Evaluate: evaluate, Columns: []string{"ll"}, Rows: []plan.Row{{Name: "plain"}},
		},
		{
			Name: "made", About: "Trained on shards that are made first.", Seeds: []uint64{1}, Flags: tiny("2"),
			Data:     &plan.DataSet{Name: "own", Make: []string{"folder", "--size", "32", "--test-percent", "50"}, Source: "a folder of pictures"},
			Evaluate: evaluate, Columns: []string{"rmse"}, Rows: []plan.Row{{Name: "plain"}},
		},
		{
			Name: "chosen", About: "The checkpoint is chosen: rates so high that the last is not the best.", Seeds: []uint64{1},
			Data: &plan.DataSet{Name: "points", Builtin: "checkerboard:train=500,val=50,test=50"}, Flags: map[string]string{"steps": "12", "lr": "0.5", "batch": "20"},
			Select:  &plan.Selection{Measure: "loss", Of: 4, Evaluate: map[string]string{"split": "val"}},
			Columns: []string{"fisher", "fisher-last", "step"}, Rows: []plan.Row{{Name: "plain", Preset: "sm-board-dsm"}},
		},
		{
			Name: "between", About: "Samples between pictures.", Seeds: []uint64{1}, Data: &plan.DataSet{Name: "small", Builtin: "synth:size=8,train=8,val=4,test=4"},
			Flags:    map[string]string{"steps": "1", "width": "1", "depth": "1", "posterior-width": "1", "hidden": "2", "batch": "4", "sample-share": "0.001"},
			Between:  map[string]string{"n": "2", "interpolate": "3", "split": "test"},
			Columns:  []string{"upper-first"},
			Rows:     []plan.Row{{Name: "drawn", Preset: "vages-mnist"}},
			Pictures: []plan.Picture{{Title: "Between", Glob: "between.png"}},
		},
		{
			Name: "told", About: "Energies beside those of other data, of every checkpoint.", Seeds: []uint64{1}, Data: data, Flags: tiny("4"),
			Beside:   []plan.DataSet{{Name: "svhn", Make: []string{"svhn"}, Source: "digits"}, {Name: "celeba", Builtin: "synth:seed=9,test=16"}},
			Evaluate: evaluate, Curves: []plan.Curve{{Name: "auroc-svhn", Measure: "auroc-svhn", Every: 2}},
			Columns: []string{"auroc-noise", "auroc-svhn", "auroc-svhn-best", "auroc-celeba"}, Rows: []plan.Row{{Name: "plain"}},
		},
		{
			Name: "text", About: "Sentences, from a file to samples.", Seeds: []uint64{1},
			Data:     &plan.DataSet{Name: "prose", Make: []string{"text", "--test", "10"}, Source: "a file of sentences", Sentences: true},
			Flags:    map[string]string{"steps": "2", "embed": "3", "hidden": "4", "batch": "4"},
			Evaluate: map[string]string{"samples": "20"}, Sample: map[string]string{"n": "10"},
			Columns: []string{"nll", "nll-given", "collapsed", "forward", "forward-normal", "forward-floor", "reverse"},
			Rows: []plan.Row{
				{Name: "prior", Preset: "lebm-snli", Flags: map[string]string{"prior-steps": "2", "posterior-steps": "1"}, Lacks: []string{"nll"}},
				{Name: "lm", Preset: "lm-snli", Lacks: []string{"nll-given", "collapsed", "forward-normal"}},
			},
			Pictures: []plan.Picture{{Title: "Samples", Glob: "samples.txt"}},
		},
		{
			Name: "ranks", About: "The same on one rank and on two.", Seeds: []uint64{1}, Alone: true, Ranks: []int{1, 2},
			Flags:   map[string]string{"steps": "2"},
			Columns: []string{"losses", "loss-gap", "step-s-1", "step-s-2", "cpu-step", "mem-1", "mem-2", "batch-published", "steps-published", "days-here", "tera-ops", "days-h100"},
			Rows: []plan.Row{
				{Name: "equal", Preset: "bidvl-cifar10", Data: data, Flags: map[string]string{"width": "4", "latent": "4", "batch": "8", "deterministic": "true"}},
				{Name: "near", Preset: "bism-board-dsm", Data: &plan.DataSet{Name: "points", Make: []string{"checkerboard"}, Source: "nothing"}},
			},
		},
		{
			Name: "sums", About: "A computed one.", Seeds: []uint64{1, 2}, Compute: sums, Columns: []string{"sum"},
			Rows:    []plan.Row{{Name: "three", Flags: map[string]string{"n": "3"}}, {Name: "none", KnownBad: true}},
			Figures: []plan.Figure{{File: "sum", Title: "Sums", Curve: "sums"}},
		},
	}
}

// sums is the sum of 1 to n times the seed.
func sums(_ context.Context, in plan.Computing) (plan.Computed, error) {
	var n, sum float64
	if _, err := fmt.Sscan(in.Row.Flags["n"], &n); err != nil {
		return plan.Computed{Notes: []string{"no n, no sum"}}, nil //nolint:nilerr // a row without n
	}
	c := plan.Computed{Curves: map[string][]measure.Point{}}
	for i := 1.0; i <= n; i++ {
		sum += i * float64(in.Seed)
		c.Curves["sums"] = append(c.Curves["sums"], measure.Point{X: i, Y: sum})
		in.Tell(int64(i), int64(n))
	}
	c.Values = map[string]float64{"sum": sum}
	return c, nil
}

// errTimeout is what eventually gives.
var errTimeout = errors.New("it did not come to that in time")

// eventually waits until ok.
func eventually(ok func() bool) error {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return nil
		}
	}
	return errTimeout
}

// wantReport reports an experiment, and wants a text in what it writes.
func (s *site) wantReport(experiment, want string) {
	s.t.Helper()
	s.must("report", experiment)
	text, err := os.ReadFile(filepath.Join(s.out, "RESULTS.md"))
	if err != nil || !strings.Contains(string(text), want) {
		s.t.Errorf("%v, want %q in\n%s", err, want, text)
	}
}
