package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/setting"
	"ebtrain/trainer/settings"
)

// says is what a recorder says that has each value of kl in turn, from a step on.
func says(t *testing.T, out string, from int64, kl ...float64) string {
	t.Helper()
	return saysOf(t, nil, out, from, kl...)
}

// saysOf is says with some arguments more.
func saysOf(t *testing.T, args []string, out string, from int64, kl ...float64) string {
	t.Helper()
	o, fs, err := parse(nil, append([]string{"--out", out, "--print-every", "1000", "--steps", "1000"}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.resume = from > 0
	var text strings.Builder
	r, err := newRecorder(o, runInfo{flags: cliflag.Values(fs)}, 1, "test", &text)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Started(from); err != nil {
		t.Fatal(err)
	}
	rec := loop.Record{Step: from, Names: algo.Names(o.model.Model().Report()), StepTime: time.Millisecond}
	rec.Values = make([]float64, len(rec.Names))
	for _, v := range kl {
		for i, name := range rec.Names {
			rec.Values[i] = 1
			switch name {
			case "kl":
				rec.Values[i] = v
			case "grad_inference": // is no loss
				rec.Values[i] = v * v
			}
		}
		if err := r.Stepped(rec); err != nil {
			t.Fatal(err)
		}
		rec.Step++
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestJumpIsTold: a loss that jumps is told of in one line, once in a run, over resumes;
// what a resume does anew is told of anew.
func TestJumpIsTold(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	const want = "warning: kl jumps to 3.39e+09, from at most 114 (step 4 of metrics.jsonl): "
	said := says(t, out, 0, 114, 65, 68, 73, 3.39e9, 52)
	if strings.Count(said, "warning") != 1 || !strings.Contains(said, want) || !strings.Contains(said, " begin another with --bounded-variance, or with --warmup 50, or with a lower --lr or --lr-energy\n") {
		t.Errorf("want %q, once, in:\n%s", want, said)
	}
	if said := says(t, out, 6, 62, 55, 1e9); strings.Contains(said, "warning") {
		t.Errorf("told again after a resume:\n%s", said)
	}
	if said := says(t, out, 4, 3.39e9, 52); !strings.Contains(said, want) {
		t.Errorf("not told when done again:\n%s", said)
	}
}

// TestJumpBetweenLines: the step of a jump has its line however few there are, and so a
// resume does not tell of it again.
func TestJumpBetweenLines(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	few := []string{"--log-every", "3"}
	if said := saysOf(t, few, out, 0, 114, 65, 68, 73, 3.39e9, 52); !strings.Contains(said, "(step 4 of metrics.jsonl)") {
		t.Errorf("no jump in:\n%s", said)
	}
	lines, err := rundir.ReadMetrics(rundir.Layout(out).MetricsFile())
	if err != nil || len(lines) != 3 || lines[2].Step != 4 {
		t.Errorf("%d lines, %v, want those of steps 0, 3 and 4", len(lines), err)
	}
	if said := saysOf(t, few, out, 6, 62, 55, 1e9); strings.Contains(said, "warning") {
		t.Errorf("told again after a resume:\n%s", said)
	}
}

// TestSteadierSettingIsNamed: what keeps losses from jumping is named by the methods and
// networks that have it, unless it is on.
func TestSteadierSettingIsNamed(t *testing.T) {
	for args, want := range map[string]string{
		"--algo bidvl --net conv32":                    "begin another with --bounded-variance, or with --warmup 50, or with a lower --lr or --lr-energy\n",
		"--algo bidvl --net conv32 --bounded-variance": "begin another with --warmup 50, or with a lower --lr or --lr-energy\n",
		"--algo bidvl --net conv32 --warmup 3":         "begin another with --bounded-variance, or with a lower --lr or --lr-energy\n",
		"--algo bidvl --net resnet32":                  "begin another with --warmup 50, or with a lower --lr, --lr-energy or --lr-generator\n",
		"--algo vae --net conv32":                      "begin another with --bounded-variance, or with --warmup 50, or with a lower --lr\n",
	} {
		said := saysOf(t, strings.Fields(args), filepath.Join(t.TempDir(), "run"), 0, 114, 65, 3.39e9)
		if !strings.Contains(said, want) {
			t.Errorf("%s: want %q in:\n%s", args, want, said)
		}
	}
}

// TestRatesInUse: a learning rate that another setting leaves without effect is no advice.
func TestRatesInUse(t *testing.T) {
	o := model(t, "--algo lebm --prior gaussian")
	if got := instead(o, early); got != "a lower --lr-generator" {
		t.Errorf("got %q", got)
	}
}

// TestJumpIsLogged: it is in the log of rank 0, too.
func TestJumpIsLogged(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	said, _, err := small(t, out, "--steps", "12", "--lr", "0.1")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(out, "rank-0.log"))
	if err != nil || !strings.Contains(said, "warning: kl jumps to ") || !strings.Contains(string(log), `"says":"kl jumps to `) {
		t.Errorf("%v, the log has\n%s\nof\n%s", err, log, said)
	}
}

// TestRates: every preset of every method has a learning rate, by that name.
func TestRates(t *testing.T) {
	for _, m := range settings.Methods() {
		for _, p := range m.Presets {
			at, err := chosen.Names{Algo: m.Name, Preset: p.Name}.Begin()
			if err != nil {
				t.Fatal(err)
			}
			own := &setting.Set{}
			at.Preset.Config.Clone().Settings(own)
			flags := rates(own)
			if len(flags) == 0 {
				t.Errorf("%s: no learning rate", p.Name)
			}
			for _, s := range own.All() {
				help := strings.Contains(s.Help, "learning rate") && !strings.Contains(s.Help, "factor on") && s.Type() == "float64" && s.String() != "0"
				if named := strings.Contains(" "+strings.Join(flags, " ")+" ", " --"+s.Name+" "); named != help {
					t.Errorf("%s: --%s is a learning rate by its help: %v, by its name: %v (%s)", p.Name, s.Name, help, named, s.Help)
				}
			}
		}
	}
}
