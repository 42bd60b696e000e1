package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/collective/simulate"
	"ebtrain/launch/cliflag"
)

// TestFromKeeps: a prediction from a report is written and drawn as one of a
// measurement is.
func TestFromKeeps(t *testing.T) {
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "old.json"), filepath.Join(dir, "own.png")
	if err := known().write(file); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for args, want := range map[string]string{"--out " + out: filepath.Join(out, "bench.png"), "--picture " + picture: picture} {
		if _, err := runs(t, "--from "+file+" --predict 8,16 "+args); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(want)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(f); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if r, err := read(filepath.Join(out, "bench.json")); err != nil || len(r.Predictions) == 0 {
		t.Errorf("%v, kept %+v", err, r)
	}
}

// TestFromReads: flags of a measurement are no use beside --from, and refused.
func TestFromReads(t *testing.T) {
	for args, want := range map[string]string{
		"--from a.json --net conv32":                    "--from a.json measures nothing and does not read --net: leave it out, or leave out --from and measure",
		"--from a.json --batch 4 --threads 2 --check":   "does not read --batch, --threads: leave it out",
		"--from a.json --preset sm-board-dsm":           "does not read --preset: leave it out",
		"--from a.json -nproc 2 --fit-time 0 --check":   "does not read --nproc, --fit-time: leave it out",
		"--from a.json --confidence 0 --link-gbit=1e-9": "does not read --confidence: leave it out",
	} {
		_, err := runs(t, args)
		if _, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want a usage error of one line with %q", args, err, want)
		}
	}
}

// TestSettingsOfNets: --net decides which other flags there are, and what they are without
// being said.
func TestSettingsOfNets(t *testing.T) {
	for args, want := range map[string]string{
		"--algo lebm --net lstm --embed 64 --help": "--embed int",
		"--net resnet32 --help":                    "(default hinge)",
	} {
		if said, err := runs(t, args); !errors.Is(err, cliflag.ErrHelp) || !strings.Contains(said, want) {
			t.Errorf("%s: %v, and no %q in\n%s", args, err, want, said)
		}
	}
}

// TestCurves: each prediction is drawn with those of its scaling.
func TestCurves(t *testing.T) {
	r := &Report{Predictions: []Prediction{{Ranks: 16}, {Ranks: 64}, {Ranks: 8, Strong: true}}}
	got := map[string][]float64{}
	for _, c := range r.curves() {
		got[c.name] = c.x
	}
	if s, w := got["predicted, strong"], got["predicted, weak"]; len(s) != 1 || s[0] != 8 || len(w) != 2 {
		t.Errorf("strong %v, weak %v, want 8, and 16 and 64", s, w)
	}
}

// TestSharesOfAStep: what a step takes is shared out once, also where ranks begin before
// the last has ended its step, and where they compute less than was measured.
func TestSharesOfAStep(t *testing.T) {
	r := simulate.Result{Median: 100, Compute: 50, Exposed: []simulate.Exposed{{Label: batchNorm, US: 20}}, Slowest: 60}
	for _, own := range []float64{40, 50, 200} {
		sum := 0.0
		for _, l := range losses(r, own, 10) {
			sum += l.Share
		}
		if want := (130.0 - 10) / 130; sum > want+1e-9 || sum < want-1e-9 {
			t.Errorf("a rank that computes %v us: the losses are %v of a step, want %v", own, sum, want)
		}
	}
}

// A report goes into a pipe, or a device, as what it is: --json /dev/stdout leaves that in its
// place.
func TestReportIntoPipe(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "stdout")
	if err := os.Symlink(fmt.Sprintf("/proc/self/fd/%d", in.Fd()), link); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		o := &options{json: link}
		written <- errors.Join(o.place(), known().keep(o), in.Close())
	}()
	text, err := io.ReadAll(out)
	if err := errors.Join(err, <-written); err != nil || !json.Valid(text) {
		t.Errorf("%.60q, %v; want a report", text, err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link has become %v, %v", st, err)
	}
}
