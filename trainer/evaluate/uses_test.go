package main

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
)

// ofAll are the flags that every measure reads.
var ofAll = []string{"run", "samples-from", "data", "split", "measures", "batch", "seed", "json", "device", "threads", "step", "ema", "train-classifier", "passes"}

// Each flag is one of all measures or of some that there are, so that a new one is not
// forgotten.
func TestUses(t *testing.T) {
	fs := pflag.NewFlagSet("evaluate", pflag.ContinueOnError)
	new(options).flags(fs, new([]string), new(string))
	names := measureNames()
	for _, u := range uses() {
		if fs.Lookup(u.flag) == nil || len(u.measures) == 0 {
			t.Errorf("--%s: no such flag, or one of no measure", u.flag)
		}
		for _, m := range u.measures {
			if !slices.Contains(names, m) {
				t.Errorf("--%s is of %s, which is no measure", u.flag, m)
			}
		}
	}
	fs.VisitAll(func(f *pflag.Flag) {
		some := slices.ContainsFunc(uses(), func(u use) bool { return u.flag == f.Name })
		if some == slices.Contains(ofAll, f.Name) {
			t.Errorf("--%s: want it of all measures or of some", f.Name)
		}
	})
}

// A flag that changes nothing of what is asked for is refused, and no other is.
func TestFlagsWithoutEffect(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--run a --measures nll,recollection --reference 500", "--reference is for --measures frechet,kid,swd,prdc,c2st,neighbours,is, none of which is asked for: name one, or leave --reference out"},
		{"--run a --samples 500", "--samples is for --measures frechet,kid,swd,prdc,c2st,neighbours,is,forward,reverse, none of which is asked for: name one, or leave --samples out"},
		{"--run a --measures kid --limit 10", "--limit is for --measures rmse,energy,"},
		{"--run a --measures swd --classifier f", "--classifier is for --measures frechet,kid,prdc,is, none of which is asked for"},
		{"--run a --measures rmse --ais-chains 5", "--ais-chains is for --measures ll,density, none of which is asked for"},
		{"--run a --measures kid --picture a.png", "--picture is for --measures rmse,density, none of which is asked for"},
		{"--run a --probe-limit 5", "--probe-limit is for --measures probe, which is not asked for: name one, or leave --probe-limit out"},
		{"--run a --judge b", "--judge is for --measures forward, which is not asked for"},
		{"--samples-from a --data b --step 4", "--step is of a --run, and the samples are those of --samples-from: leave it out"},
		{"--samples-from a --data b --stats running", "--stats is of a --run"},
		{"--run a --measures energy,forward --judge b --given", "--given is for --measures frechet,kid,swd,prdc,c2st,neighbours,is, none of which is asked for"},
		{"--samples-from a --data b --given", "--given is of a --run, and the samples are those of --samples-from: leave it out"},
		{"--run a --measures kid --given --stats batch", "--stats goes without --given: samples of given latents are drawn by batch norm's running statistics alone"},
		{"--data b --train-classifier f --measures kid", "--measures has no effect beside --train-classifier, which measures nothing: leave it out"},
		{"--data b --train-classifier f --json", "--json has no effect beside --train-classifier"},

		{"--run a --limit 5 --ais-chains 3 --picture a.png --ood c --stats running", ""},
		{"--run a --measures all,kid --samples 50 --reference 0 --limit 5 --feature-cache c --inception f", ""},
		{"--run a --metrics kid --samples 50", ""},
		{"--run a --measures kid,energy --given", ""},
		{"--run a --measures rmse --given=false", ""},
		{"--run a --metrics kid --limit 10", "--limit is for --measures rmse,energy,"},
		{"--run a --measures energy --picture none --feature-cache none", ""},
		{"--run a --measures forward --judge b --limit 4 --samples 9", ""},
		{"--samples-from a --data b --samples 2048 --reference 0", ""},
		{"--data b --split val --train-classifier f --passes 3 --limit 5 --batch 9 --seed 2 --threads 1 --device cpu", ""},
	} {
		_, err := parse(strings.Fields(tt.args), io.Discard)
		if tt.want == "" && err == nil {
			continue
		}
		if usage, ok := errors.AsType[*cliflag.UsageError](err); !ok || tt.want == "" || !strings.HasPrefix(usage.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// Of --measures all the model decides which there are: a flag of others is told of. Where
// a measure is named, its flags are not told of beside the measure itself.
func TestWarnUnused(t *testing.T) {
	for _, tt := range []struct{ measures, want string }{
		{"all", "--probe-limit is for --measures probe, which is not to be had of runs/a, a run of --algo toy"},
		{"all,probe", ""},
		{"ll,probe", ""},
	} {
		e := toyEvaluation(t, plane, [2]float64{}, [2]float64{1, 1})
		var said strings.Builder
		e.log, e.trained.Settings.Algo = slog.New(slog.NewTextHandler(&said, nil)), "toy"
		e.o.measures, e.o.typed = tt.measures, []string{"probe-limit", "ais-chains", "limit"}
		all, _, err := e.chosen()
		if err != nil {
			t.Fatal(err)
		}
		e.warnUnused(all)
		if got := said.String(); strings.Count(got, "\n") > 1 || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("--measures %s: it says %q, want %q", tt.measures, got, tt.want)
		}
	}
}

// Each measure has a line in --help, so that a new one is not forgotten.
func TestHelpHasMeasures(t *testing.T) {
	for _, name := range measureNames() {
		if !strings.Contains(program.About, "\n  "+name+" ") {
			t.Errorf("evaluate --help says nothing of the measure %s", name)
		}
	}
}
