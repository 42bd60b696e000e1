package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/simulate"
	"ebtrain/ddp/exec"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/run/trace"
)

// runs runs bench as a single process.
func runs(t *testing.T, args string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	err := run(t.Context(), strings.Fields(args), nil, &out, &errs)
	return out.String(), err
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--link-us Inf", "want --link-gbit from 1e-6 to 1e9, or 0, and --link-us from 0 to 1e9, got 0 and +Inf"},
		{"--link-gbit NaN", "want --link-gbit from 1e-6 to 1e9, or 0"},
		{"-nproc 8 --batch 4", "--batch 4 has fewer samples than there are ranks (8): want at least one for each"},
		{"-nproc 8 --batch 12", "--batch 12 is over all ranks and cannot be shared equally by 8: want a multiple of 8"},
		{"-nproc 4 --ranks 1,3,4 --batch 8", "--batch 8 cannot be shared equally by 3 ranks: want a multiple of all of --ranks 1, 3, 4, or --scaling weak"},
		{"-nproc 2 --ranks 1,8 --batch 8", "--ranks has 8, and 2 ranks were started"},
		{"--ranks 0", "want --ranks of at least 1, got 0"},
		{"--scaling linear", `unknown --scaling "linear": want strong, weak or both`},
		{"-nproc 2 --preset vages-ksd-board --data checkerboard --batch 6", "--batch 6 gives each of 2 ranks 3 samples, and --algo vages takes samples in groups of 2: want a multiple of 4"},
		{"--preset bism-board-dsm --objective mdsm --data checkerboard --batch 1", "--batch 1 is a batch of 1 on 1 of 1 ranks, and the losses of --algo bism as they are set want at least 2: want --batch of at least 2"},
		{"-nproc 4 --preset bism-board-dsm --objective mdsm --data checkerboard --batch 4", "--batch 4 is a batch of 1 on 1 of 4 ranks, and the losses of --algo bism as they are set want at least 2: want --batch of at least 8"},
		{"--preset sm-board-dsm --data checkerboard --flip", "--flip mirrors pictures, and --data checkerboard holds points of 2 values: leave it out"},
		{"--confidence 0", "want --confidence above 0"},
		{"--check --fit-time 0", "--fit-time 0 fits nothing to predict from"},
		{"-nproc 2 --batch 8 --check", "--check fits on some numbers of ranks, at least 2, and predicts larger ones"},
		{"--predict 0", "want --predict of at least 1"},
		{"--hidden 4", "--hidden is a setting of --algo"},
		{"--net conv99", `unknown --net "conv99"`},
		{"--algo nothing", "unknown --algo"},
		{"--threads=-1", "--threads"},
	} {
		_, err := runs(t, tt.args)
		if _, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want a usage error of one line with %q", tt.args, err, tt.want)
		}
	}
	if _, err := runs(t, "--preset sm-board-dsm --fit-time 0"); err == nil || !strings.Contains(err.Error(), "without --data steps are of built-in pictures, which do not fit") {
		t.Errorf("a model of points without data: %v", err)
	}
}

// TestReadsOwnReportsOnly: what is no report, or of another version, is one sentence.
func TestReadsOwnReportsOnly(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ text, want string }{
		"other.json":   {`{"version": 1, "collective": "all-reduce"}`, "is no report of bench --json"},
		"text.json":    {"images/s 4", "is no report of bench --json"},
		"old.json":     {`{"format": "` + Format + `", "version": 99}`, "is a report of version 99, and this bench reads versions 1 to 2: measure again"},
		"damaged.json": {`{"format": "` + Format + `", "version": 1, "cases": 7}`, "is a damaged report"},
		"alone.json":   {`{"format": "` + Format + `", "version": 1, "hosts": ["a"]}`, "has nothing to predict from: one rank was measured alone"},
		"plain.json":   {`{"format": "` + Format + `", "version": 1, "hosts": ["a", "a"]}`, "its collectives were not timed"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := runs(t, "--from "+file); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", name, err, tt.want)
		}
	}
	if _, err := runs(t, "--from "+filepath.Join(dir, "nowhere")); err == nil || !strings.Contains(err.Error(), "--from") {
		t.Errorf("no file: %v", err)
	}
}

// A speed is of what the data are.
func TestSpeedOfPoints(t *testing.T) {
	out, err := runs(t, "--preset bism-board-dsm --data checkerboard --batch 2 --threads 1 --max-time 10ms")
	if err != nil || !strings.Contains(out, "points/s") || strings.Contains(out, "images/s") {
		t.Errorf("%v, in\n%s", err, out)
	}
}

// A place that takes no file is told of before anything is measured.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	for _, flag := range []string{"--json", "--picture"} {
		out, err := runs(t, "--net conv32 --width 4 --batch 2 --threads 1 --max-time 10ms "+flag+" "+dir)
		if err == nil || !strings.Contains(err.Error(), flag+" "+dir+": it is a folder") || out != "" {
			t.Errorf("%s: %v, after %q", flag, err, out)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runs(t, "--net conv32 --width 4 --batch 2 --threads 1 --max-time 10ms --out "+file)
	if want := "--out " + file + ": " + file + ", or what it lies in, is a file: want a folder"; err == nil || err.Error() != want || out != "" {
		t.Errorf("%v, after %q, want %s", err, out, want)
	}
}

// TestOneRank measures, and says what it cannot know.
func TestOneRank(t *testing.T) {
	dir := t.TempDir()
	out, err := runs(t, "--net conv32 --width 4 --latent 3 --batch 2 --threads 1 --max-time 10ms --out "+dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"images/s", "compute", "all that was seen, not an interval", "One rank was measured alone"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "NaN") || strings.Contains(line, "Inf") {
			t.Errorf("printed %s", line)
		}
	}
	r, err := read(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := r.Cases[0]
	if r.CPU == "" {
		t.Error("the report does not say of which processor it is")
	}
	if len(r.Cases) != 1 || c.Ranks != 1 || c.Batch != 2 || len(c.Turns) != r.Rounds || r.Rounds < 1 || r.Model != nil || r.Predictions != nil {
		t.Errorf("%d cases, %d ranks, batch %d, %d turns in %d rounds, model %v", len(r.Cases), c.Ranks, c.Batch, len(c.Turns), r.Rounds, r.Model)
	}
	if !(c.Step.Value > 0 && c.Compute > 0 && c.Data >= 0) || c.Exposed != 0 || c.Slowest != 0 {
		t.Errorf("parts %v, %v, %v, %v of a step of %v", c.Compute, c.Exposed, c.Data, c.Slowest, c.Step.Value)
	}
	f, err := os.Open(filepath.Join(dir, "bench.png"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestMedianInterval draws from a skewed distribution: the interval holds its median
// as often as it says.
func TestMedianInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{6, 7, 10, 25, 100} {
		const draws = 4000
		held := 0
		for range draws {
			v := make([]float64, n)
			for i := range v {
				v[i] = r.ExpFloat64()
			}
			if m := medianOf(v); m.Low <= math.Ln2 && math.Ln2 <= m.High {
				held++
			}
		}
		if share := float64(held) / draws; share < 0.94 || share > 0.99 {
			t.Errorf("%d values: the interval held the median in %.3f of all draws, want 0.95 and little more", n, share)
		}
	}
	if m := medianOf([]float64{3, 1, 2}); m.Value != 2 || m.Low != 1 || m.High != 3 {
		t.Errorf("of three values: %v, want the range", m)
	}
	if m := medianOf([]float64{4}); m.Value != 4 || m.Low != 4 || m.High != 4 {
		t.Errorf("of one value: %v", m)
	}
}

// TestQuantiles: of 0 … 40 they are 1, 20 and 39; half the width of 8 … 12 is a fifth of 10.
func TestQuantiles(t *testing.T) {
	v := make([]float64, 41)
	for i := range v {
		v[i] = float64(i * 7 % 41)
	}
	if q := quantiles(v); q.Low != 1 || q.Value != 20 || q.High != 39 {
		t.Errorf("got %+v", q)
	}
	if w := halfWidth(cost.Interval{Value: 10, Low: 8, High: 12}); w != 0.2 {
		t.Errorf("half of the width is %v", w)
	}
}

// TestSplits: rank 1 computes 30 us longer than rank 0, which waits for it 30 us; the
// other 10 us of waiting are communication.
func TestSplits(t *testing.T) {
	// Nobody waits for the slowest for longer than he waits at all.
	if s := splitsOf([][]parts{{{Compute: 100, Comm: 6, Busy: 60}}, {{Compute: 130, Busy: 100}}})[0]; s.slowest != 3 || s.exposed != 0 || s.busy != 80 {
		t.Errorf("got %+v, want 3 us of waiting for rank 1, and none besides", s)
	}
	got := splitsOf([][]parts{{{Compute: 100, Comm: 40, Data: 2}}, {{Compute: 130, Comm: 10, Data: 2}}})
	s := got[0]
	if len(got) != 1 || s.compute != 115 || s.slowest != 15 || s.exposed != 10 || s.data != 2 || s.slow != 1 {
		t.Errorf("got %+v", s)
	}
	if sum := s.compute + s.slowest + s.exposed + s.data; sum != 142 {
		t.Errorf("parts add up to %v, want the step, 142", sum)
	}
	if s := splitsOf([][]parts{{{Compute: 16960.921, Data: 6.482}}})[0]; s.slowest != 0 || s.exposed != 0 {
		t.Errorf("of a rank alone: %+v, want nobody to wait", s)
	}
	// Who waits for its batch is waited for as well: that is no communication.
	late := []parts{{Compute: 100, Comm: 10, Data: 50}}
	if s := splitsOf([][]parts{{{Compute: 100, Comm: 60}}, late, {{Compute: 101, Comm: 59}}})[0]; s.slow != 1 || !(math.Abs(s.exposed-10) <= 1e-9) || !(math.Abs(s.slowest-33) <= 1e-9) {
		t.Errorf("of a rank that waits for data for 50 us: %+v, want the others to wait for it, 33 us in the mean, and 10 us of communication", s)
	}
	c := &Case{Ranks: 2, Batch: 4, Strong: true, Weak: true, Turns: []float64{142}}
	c.add(got)
	base := &Case{Ranks: 1, Batch: 4, Strong: true, Turns: []float64{200}}
	base.add(splitsOf([][]parts{{{Compute: 200}}}))
	r := &Report{Cases: []*Case{base, c}}
	r.summarise()
	if c.SlowestShare[1] != 1 || base.StrongEfficiency != nil || c.WeakEfficiency != nil || !(math.Abs(c.StrongEfficiency.Value-200./2/142) <= 1e-12) {
		t.Errorf("shares %v, efficiency %v and %v", c.SlowestShare, c.StrongEfficiency, c.WeakEfficiency)
	}
	if len(c.Noise) != 2 || c.Noise[0] != round(100./115, 5) {
		t.Errorf("ratios %v", c.Noise)
	}
}

// TestLosses: other losses for the same batch are an error that names both.
func TestLosses(t *testing.T) {
	r := &Report{Cases: []*Case{
		{Ranks: 1, Batch: 8, First: map[string]float64{"upper": 2}},
		{Ranks: 1, Batch: 4, First: map[string]float64{"upper": 3}},
		{Ranks: 2, Batch: 8, First: map[string]float64{"upper": 2.00001}},
	}}
	if err := r.compare(); err != nil {
		t.Errorf("rounding: %v", err)
	}
	for _, bad := range []float64{2.01, math.NaN()} {
		r.Cases[2].First["upper"] = bad
		if err := r.compare(); err == nil || !strings.Contains(err.Error(), "loss upper of the first step is 2 on 1 ranks") {
			t.Errorf("loss of %v: %v", bad, err)
		}
	}
}

// spans are a step as a trace has it: computing, two collectives at once, the second of
// which is waited for first.
func spans() []trace.Span {
	begin := time.Unix(1_700_000_000, 0)
	at := func(us int) time.Time { return begin.Add(time.Duration(us) * time.Microsecond) }
	r := trace.NewRecorder(begin)
	r.Loop("load", at(0), at(50))
	r.Loop("feed", at(50), at(60))
	op := func(kind string, of *exec.Travel, from, to int, bytes int64) {
		r.Op(exec.Event{Kind: kind, Name: "any text", Start: at(from), Time: at(to).Sub(at(from)), Bytes: bytes, Travel: of})
	}
	bucket := &exec.Travel{Number: 1, Kind: collective.AllReduce, Label: "energy/bucket 0"}
	moments := &exec.Travel{Number: 0, Kind: collective.AllReduce, Label: "g.bn1.moments"}
	op("Conv2D", nil, 60, 100, 9)
	op("Start", bucket, 100, 101, 0)
	op("Conv2D", nil, 101, 150, 9)
	op("Start", moments, 150, 152, 0)
	op("Wait", moments, 152, 300, 0)
	op("Conv2D", nil, 300, 340, 9)
	op("Wait", bucket, 340, 345, 0)
	op(exec.Collective, bucket, 100, 200, 1<<20)
	op(exec.Collective, moments, 150, 300, 512)
	r.Loop("run", at(60), at(350))
	r.Loop("report", at(350), at(360))
	r.Loop("step", at(0), at(360))
	return r.Spans()
}

func TestEvents(t *testing.T) {
	events, err := eventsOf(spans())
	if err != nil {
		t.Fatal(err)
	}
	got, err := middle([][]simulate.Event{events, events})
	if err != nil {
		t.Fatal(err)
	}
	want := []simulate.Event{
		{Kind: simulate.Compute, US: 51}, {Kind: simulate.Start, Collective: 0, Bytes: 1 << 20, Label: gradients},
		{Kind: simulate.Compute, US: 51}, {Kind: simulate.Start, Collective: 1, Bytes: 512, Label: batchNorm},
		{Kind: simulate.Compute, US: 0}, {Kind: simulate.Wait, Collective: 1},
		{Kind: simulate.Compute, US: 40}, {Kind: simulate.Wait, Collective: 0},
		{Kind: simulate.Compute, US: 15},
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if us := computeOf(got); us != 157 {
		t.Errorf("%v us are computed, want 157", us)
	}
	other := append([]simulate.Event{}, events...)
	if _, err := middle([][]simulate.Event{events, other[:len(other)-2]}); err == nil {
		t.Error("steps of different collectives are merged")
	}
	r := trace.NewRecorder(time.Now())
	r.Loop("feed", time.Now(), time.Now())
	alone, err := eventsOf(r.Spans())
	if err != nil || alone != nil {
		t.Errorf("a step without collectives: %v, %v", alone, err)
	}
	if none, err := middle([][]simulate.Event{alone, alone}); err != nil || none != nil {
		t.Errorf("steps without collectives: %v, %v", none, err)
	}
}

// TestEventsOfParts: collectives of a sharded optimiser are told apart from all-reduces.
func TestEventsOfParts(t *testing.T) {
	r, base := trace.NewRecorder(time.Now()), time.Now()
	at := func(us int) time.Time { return base.Add(time.Duration(us) * time.Microsecond) }
	op := func(kind string, of *exec.Travel, from, to int, bytes int64) {
		r.Op(exec.Event{Kind: kind, Name: "any text", Start: at(from), Time: at(to).Sub(at(from)), Bytes: bytes, Travel: of})
	}
	g, w := &exec.Travel{Number: 0, Kind: collective.ReduceScatter, Label: "g"}, &exec.Travel{Number: 1, Kind: collective.AllGather, Label: "w"}
	r.Loop("feed", at(0), at(1))
	op("Start", g, 1, 2, 0)
	op("Wait", g, 2, 3, 0)
	op("Start", w, 3, 4, 0)
	op("Wait", w, 4, 5, 0)
	op(exec.Collective, g, 1, 3, 800)
	op(exec.Collective, w, 3, 5, 400)
	r.Loop("step", at(0), at(6))
	events, err := eventsOf(r.Spans())
	if err != nil {
		t.Fatal(err)
	}
	var got []simulate.Event
	for _, e := range events {
		if e.Kind == simulate.Start {
			got = append(got, e)
		}
	}
	want := []simulate.Event{{Kind: simulate.Start, What: collective.ReduceScatter, Bytes: 800, Label: "g"},
		{Kind: simulate.Start, Collective: 1, What: collective.AllGather, Bytes: 400, Label: "w"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	other := &exec.Travel{Number: 2, Kind: collective.Broadcast, Label: "g"}
	op("Start", other, 5, 6, 0)
	op(exec.Collective, other, 5, 6, 8)
	if _, err := eventsOf(r.Spans()); err == nil || !strings.Contains(err.Error(), "broadcast") {
		t.Errorf("a collective that is not known: error %v", err)
	}
}

// TestChanged compares the times of collectives before and after.
func TestChanged(t *testing.T) {
	report := func(us ...float64) cost.Report {
		var r cost.Report
		for _, x := range us {
			r.Sizes = append(r.Sizes, cost.Size{Times: cost.Times{Median: x}})
		}
		return r
	}
	r := &Report{Collectives: []cost.Report{report(10, 20, 30), report(10, 20, 50)}}
	if s := r.changed(); s != "" {
		t.Errorf("one size of three: %s", s)
	}
	r.Collectives[1] = report(13, 14, 30)
	if s := r.changed(); !strings.Contains(s, "at 2 of 3 sizes: the links or the machine changed") {
		t.Errorf("two sizes of three: %q", s)
	}
}

// TestResiduals: what the model leaves over is said for each group and each size, of two
// timings the mean.
func TestResiduals(t *testing.T) {
	r := &Report{FitUpTo: 2, Model: &cost.Model{Measured: []cost.Residual{
		{Ranks: []int{2}, Bytes: 4 << 20, Measured: 110, Model: 100}, {Ranks: []int{2}, Bytes: 256, Measured: 5, Model: 10},
		{Ranks: []int{1, 1}, Bytes: 16 << 10, Measured: 30, Model: 10}, {Ranks: []int{2}, Bytes: 4 << 20, Measured: 130, Model: 100},
	}}}
	var out strings.Builder
	if err := r.printPredictions(&out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{"measured over the model, less 1, in % 256 B 16 KiB 4.0 MiB", "2 ranks on a host -50 - +20", "1+1 ranks on hosts - +200 -"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestReportComesBack: what --json writes is read as it was.
func TestReportComesBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	r := &Report{Format: Format, Version: Version, Seed: 1<<63 + 1, Hosts: []string{"a"}, Cases: []*Case{{Ranks: 2, Noise: []float64{1.00001, 1. / 3}}}}
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	got, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(r)
	b, errB := json.Marshal(got)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("%v, %v: %s\n%s", errA, errB, a, b)
	}
}
