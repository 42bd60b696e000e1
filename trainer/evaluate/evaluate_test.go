package main

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/trained"
)

// The last batch is never of one sample, where more are read than one.
func TestNoBatchOfOne(t *testing.T) {
	for _, tt := range []struct {
		batch       int
		there, read int64
		want        int
	}{
		{100, 300, 300, 100}, {100, 300, 101, 99}, {33, 300, 100, 32}, {100, 90, 90, 90}, {100, 101, 101, 99},
		{2, 300, 7, 4}, {3, 7, 7, 4}, {100, 300, 1, 100}, {100, 1, 1, 1}, {7, 300, 43, 5},
		{2, 3, 3, 3}, {2, 8, 8, 2}, {6, 61, 61, 7}, {2, 2, 2, 2},
	} {
		if got := evened(tt.batch, tt.there, tt.read); got != tt.want {
			t.Errorf("batches of %d for %d of %d samples: got %d, want %d", tt.batch, tt.read, tt.there, got, tt.want)
		}
	}
	for batch := 2; batch < 20; batch++ {
		for read := int64(2); read < 300; read++ {
			if n := int64(evened(batch, read, read)); n < 2 || n > read || read%n == 1 {
				t.Errorf("batches of %d, said %d, of %d samples: the last is of one", n, batch, read)
			}
		}
	}
}

// TestOtherNames has measures that are named as elsewhere sent to those that there are.
func TestOtherNames(t *testing.T) {
	names := measureNames()
	for word, here := range elsewhere {
		first, _, _ := strings.Cut(here, ",")
		if slices.Contains(names, word) || !slices.Contains(names, first) {
			t.Errorf("%s is called %s: want another word for a measure", word, here)
		}
	}
}

func TestParse(t *testing.T) {
	o, err := parse(strings.Fields("-run a -split train --limit 10 --json"), io.Discard)
	if err != nil || o.run != "a" || o.split != "train" || o.limit != 10 || !o.json || o.batch != 100 || o.data != "" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, c := range []struct{ args, want string }{
		{"", "--run is required"},
		{"--run a --batch 1", "want --batch from 2 to"},
		{"--run a --batch 2000000", "want --batch from 2 to"},
		{"--run a --limit -1", "want --limit of at least 0"},
		{"--run a --device tpu", `unknown --device "tpu"`},
		{"--run a --picture a.jpg", "--picture a.jpg: want a name that ends in .png, or none"},
		{"--run a --measures ll,fid", `unknown --measures "fid": here that is frechet, with the weights of Inception-v3 as --inception`},
		{"--run a --measures ll,rsme", `unknown --measures "rsme": did you mean rmse?`},
		{"--run a --measures ll,quality", `unknown --measures "quality": want some of rmse, energy, fisher, critic, gap, loss, ll, density, nll, recollection, probe, frechet, kid, swd, prdc, c2st, neighbours, is, forward, reverse, all, with`},
		{"--run a --measures=", `unknown --measures ""`},
		{"--run a --step -2", "want --step of at least 0, or -1 for the newest checkpoint alone, got -2"},
		{"--run a --step 5,-1", "want --step of at least 0, or -1 for the newest checkpoint alone, got 5,-1"},
		{"--run a --step last", `--step "last": want the steps of a checkpoint, those of several with commas between, all, or -1 for the newest`},
		{"--run a --step 5,,6", `--step "5,,6": want the steps`},
		{"--run a --step 5,6,5", "--step names 5 twice"},
		{"--run a --step 5,6 --picture a.png", "--picture a.png is one file, and --step names several checkpoints: leave it out"},
		{"--run a --ais-steps 0", "want --ais-steps from 1 to 1048576, got 0"},
		{"--run a --ais-chains 2000000", "want --ais-chains from 1 to 1048576, got 2000000"},
		{"--run a --probe-limit -1", "want --probe-limit of at least 0"},
		{"--run a --ais-chains 0", "want --ais-chains from 1"},
		{"--run a --judge b", "--judge is for --measures forward, which is not asked for"},
		{"--run a --samples 1", "want --samples from 2"},
		{"--run a --reference -1", "want --reference of at least 2, or 0"},
		{"--run a --stats mine", `unknown --stats "mine"`},
		{"--run a --samples-from b --data c", "--samples-from is judged beside --data, which it wants, instead of a --run"},
		{"--samples-from b", "--samples-from is judged beside --data"},
		{"--train-classifier f", "--train-classifier trains on the labels of --data, which it wants"},
		{"--run r --passes 3", "--passes is of --train-classifier, which is not given"},
		{"--run r --ood d --measures rmse", "--ood is for --measures energy, which is not asked for"},
		{"--train-classifier f --data d --passes 0", "want --passes from 1"},
		{"--run a --measures kid --feature-cache ood_test.go", "--feature-cache ood_test.go is a file, or lies in one: want a folder, or none"},
		{"--run a --measures kid --feature-cache ood_test.go/in", "--feature-cache ood_test.go/in is a file, or lies in one"},
		{"--run a --limit few", `--limit "few": want a whole number`},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		if usage, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.HasPrefix(usage.Error(), c.want) {
			t.Errorf("%q: got %v, want a usage error that begins with %q", c.args, err, c.want)
		}
	}
}

// Each pass over a split shows where it is, and calls samples what they are.
func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		model algo.Model
		data  string
		unit  string
	}{
		{bidvl.CIFAR10().Config, "synth:train=64", "images/s"},
		{toy.Config{C: 1, H: 1, W: 2}, "checkerboard:train=64", "points/s"},
	} {
		var out strings.Builder
		e := &evaluation{
			o: options{batch: 8, limit: 20}, takes: tt.model.Takes(), trained: &trained.Run{Model: tt.model},
			show: progressbar.ConfigurePhases(progressbar.Config{Out: &out, Terminal: true, Width: func() int { return 100 }}),
		}
		seen := 0
		n, err := e.each(t.Context(), e.split("mean image", tt.data, "train"), func(x []float32, labels []int64) error {
			seen += len(labels)
			if len(x) != len(labels)*tt.model.Takes().Shape.Len() {
				t.Errorf("%s: %d values of %d samples", tt.data, len(x), len(labels))
			}
			return nil
		})
		if err != nil || n != 20 || seen != 20 {
			t.Fatalf("%d samples, %d seen, %v", n, seen, err)
		}
		if s := out.String(); !strings.HasPrefix(s, "\rmean image 8/20 [") || !strings.Contains(s, "mean image 20/20 [") || !strings.Contains(s, tt.unit) {
			t.Errorf("%s: shown is %q", tt.data, s)
		}
	}
}

// sample is a report with every part.
func sample() *report {
	return &report{
		Run: "runs/a", Step: 300, Data: "shards/celeba32", Split: "test", Images: 995,
		RMSEBatch: new(0.21346), RMSERunning: new(0.22), RMSEMeanImage: new(0.51),
		Energies: []energies{
			{Of: "data", N: 995, Mean: 0.605582, SD: 0.00107, Min: 0.6, Median: 0.6059, Max: 0.607},
			{Of: "noise", N: 100, Mean: 12.5, SD: 3, Min: 1, Median: 12, Max: 20.25},
		},
		AUROC: []auroc{{"noise", 0.99995}}, Picture: "runs/a/samples/recon.png",
		LL: new(-3.14159), LogZ: &logZ{Value: 12.3456789, SE: new(0.0217), ESS: new(1234.5), How: "by annealing 2000 chains"},
		Fisher: new(-5880.25), PosteriorGap: new(0.5), Density: &densityMap{"runs/a/samples/density.png", 0.99},
		Probe: new(0.97), ProbeUntrained: new(0.8), ProbeRaw: new(0.91), ProbeScaled: new(0.98), ProbeUntrainedScaled: new(0.9), ProbeSamples: 10000,
		noun: "pictures",
	}
}

func TestTable(t *testing.T) {
	const want = `runs/a after 300 steps, 995 pictures of shards/celeba32/test

RMSE of reconstruction  0.2135  (batch statistics)
                        0.2200  (running statistics)
RMSE of the mean image  0.5100

log-likelihood          -3.1416   (log Z 12.3457 ± 0.022, by annealing 2000 chains, 1234 of them effective)
Fisher divergence       -5880.25  (but for the data's constant)
posterior's divergence  0.5

accuracy of a linear machine  0.9700  on posterior means (trained on 10000 pictures)
                              0.8000  on those of the untrained posterior
                              0.9100  on raw values
                              0.9800  on posterior means, standardised
                              0.9000  on those of the untrained posterior, standardised

energy of  pictures  mean     sd       min  median  max
data       995       0.60558  0.00107  0.6  0.6059  0.607
noise      100       12.5     3        1    12      20.25

AUROC against noise  1.0000

inputs above their reconstructions: runs/a/samples/recon.png
density (0.9900 of it is shown) beside the data: runs/a/samples/density.png
`
	var b strings.Builder
	if err := sample().writeTable(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	if err := sample().writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(b.String()), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run", "step", "data", "split", "images", "rmse", "rmse_running", "rmse_mean_image", "energies", "auroc", "picture",
		"ll", "log_z", "fisher", "posterior_gap", "density", "probe", "probe_untrained", "probe_raw", "probe_samples"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("no field %q in %s", name, b.String())
		}
	}
	if strings.Count(b.String(), "\n") != 1 {
		t.Errorf("want one line, got %q", b.String())
	}
}

// JSON has no NaN, and a number that is one takes no other with it; of finite ones a report
// is what encoding/json makes of it.
func TestJSONOfWhatIsNotFinite(t *testing.T) {
	r := sample()
	r.Quality = &comparison{Sizes: map[string]int{"samples": 3, "noise": 2}, Notes: []string{"a \"<note>\""}, Rows: []comparisonRow{
		{Name: "kid", Better: compare.Lower, Samples: new(1.5), Spread: 1e-9, Controls: map[string]float64{"noise": 2, "blurred": 1e30}, Blind: []string{}},
		{Name: "swd", Controls: nil},
	}}
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.writeJSON(&b); err != nil || b.String() != string(want)+"\n" {
		t.Errorf("%v, got\n%swant\n%s", err, &b, want)
	}
	r.Loss, r.Quality.Rows[0].Floor, r.Quality.Rows[0].Spread = new(math.NaN()), new(math.Inf(1)), math.NaN()
	r.Quality.Rows[0].Controls["noise"] = math.Inf(-1)
	b.Reset()
	if err := r.writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"loss":"NaN"`, `"floor":"Inf"`, `"noise":"-Inf"`, `"spread":"NaN"`, `"ll":-3.14159`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, &b)
		}
	}
}

func TestKeepEnergies(t *testing.T) {
	var r report
	if err := r.keepEnergies("data", []float64{1, 2, 3, 6}); err != nil {
		t.Fatal(err)
	}
	if e := r.Energies[0]; e.N != 4 || e.Mean != 3 || e.Min != 1 || e.Max != 6 || e.Median != 2.5 {
		t.Errorf("got %+v", e)
	}
	if err := r.keepAUROC("noise", []float64{1, 2}, []float64{3, 4}); err != nil || r.AUROC[0].Value != 1 {
		t.Errorf("data of lower energy: AUROC %+v, %v, want 1", r.AUROC, err)
	}
}

// Energies that are not finite are left out of a row's numbers and counted beside them; a
// score of NaN, or no finite energy at all, says that the model has diverged, and of what.
func TestEnergiesNotFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	r := report{noun: "pictures"}
	if err := r.keepEnergies("data", []float64{1, inf, 3, nan, 2}); err != nil || r.Energies[0].N != 3 || r.Energies[0].NotFinite != 2 {
		t.Fatalf("%+v, %v", r.Energies, err)
	}
	var table strings.Builder
	if err := r.writeTable(&table); err != nil || !strings.Contains(table.String(), "  3  and 2 that are not finite\n") {
		t.Errorf("%v, table\n%s", err, &table)
	}
	for _, err := range []error{r.keepEnergies("noise", []float64{nan, nan}), r.keepAUROC("noise", []float64{1, nan}, []float64{3}), r.keepAUROC("noise", []float64{1}, []float64{nan})} {
		if !diverged(t, &evaluation{}, err) {
			t.Errorf("%v is no divergence", err)
		}
	}
}
