package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/run/rundir"
)

func TestParseDefaults(t *testing.T) {
	o, fs, err := parse(nil, []string{"-out", "runs//a/"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := bidvl.CIFAR10().Config
	if own(o) != want {
		t.Errorf("the model is %+v, want the released code's %+v", own(o), want)
	}
	if o.out != "runs/a" || o.data != "synth" || o.settings.Batch != 100 || o.settings.Seed != 1 || o.how.Device != "auto" {
		t.Errorf("defaults are %+v", o)
	}
	if v := cliflag.Values(fs); v["latent"] != "100" || v["out"] != "runs/a" {
		t.Errorf("values for config.json are %v", v)
	}
}

// TestParseSharesTheSchedule sets what both levels have in common.
func TestParseSharesTheSchedule(t *testing.T) {
	o, _, err := parse(nil, strings.Fields("--out a --beta1 0.5 --beta2 0.8 --lr-decay 0.9 --lr 0.1 --lr_energy 0.2 --weight-decay 0 --order lower-upper"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m := own(o)
	if m.Upper.Beta1 != 0.5 || m.Lower.Beta1 != 0.5 || m.Upper.Beta2 != 0.8 || m.Lower.Beta2 != 0.8 || m.Upper.Decay != 0.9 || m.Lower.Decay != 0.9 {
		t.Errorf("schedules are %+v and %+v", m.Upper, m.Lower)
	}
	if m.Upper.LR != 0.2 || m.Lower.LR != 0.1 || m.Lower.WeightDecay != 0 || m.Order != bidvl.LowerFirst {
		t.Errorf("the model is %+v", m)
	}
}

// TestParseRefuses tries every number just outside of its range.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--out=", "--out is required"},
		{"--steps 0", "want --steps of at least 1"},
		{"--batch 0", "want --batch of at least 1"},
		{"--deterministic --batch 8 --threads 2", "--deterministic uses one thread per rank"},
		{"--batch 2000000000", "want --batch of at most"},
		{"--width 0", "want --width of at least 4"},
		{"--width 6", "want --width of a multiple of 4"},
		{"--width 20000", "want --width of at most"},
		{"--latent 0", "want --latent of at least 1"},
		{"--latent 10000000", "want --latent of at most"},
		{"--log-every 0", "want --log-every of at least 1"},
		{"--print-every -1", "want --print-every of at least 0"},
		{"--check-every -1", "want --check-every of at least 0"},
		{"--ckpt-every -1", "want --ckpt-every of at least 0"},
		{"--ckpt-keep -1", "want --ckpt-keep of at least 0"},
		{"--sample-every -1", "want --sample-every of at least 0"},
		{"--samples -1", "want --samples of at least 0"},
		{"--prefetch -1", "want --prefetch of at least 0"},
		{"--prefetch 5000", "want --prefetch of at most"},
		{"--threads -1", "want --threads"},
		{"--profile -2", "want --profile of at least -1"},
		{"--steps 5 --profile 5", "want --profile of at most 4"},
		{"--lr 0", "want --lr above 0"},
		{"--lr inf", "want --lr above 0, and finite in float32, got +Inf"},
		{"--lr 1e39", "want --lr above 0, and finite in float32, got 1e+39"},
		{"--lr-energy -1", "want --lr-energy above 0"},
		{"--beta1 1", "want --beta1 of at least 0 and below 1"},
		{"--beta2 -0.1", "want --beta2 of at least 0 and below 1"},
		{"--lr-decay 0", "want --lr-decay above 0 and at most 1"},
		{"--lr-decay 1.1", "want --lr-decay above 0 and at most 1"},
		{"--weight-decay -1", "want --weight-decay of at least 0"},
		{"--vae-weight nan", "want --vae-weight of at least 0"},
		{"--latent-weight -1", "want --latent-weight of at least 0"},
		{"--algo x", `unknown --algo "x"`},
		{"--net x", `unknown --net "x"`},
		{"--order x", `unknown --order "x"`},
		{"--device x", `unknown --device "x"`},
	} {
		_, _, err := parse(nil, append([]string{"--out", "a"}, strings.Fields(c.args)...), io.Discard)
		usage, ok := errors.AsType[*cliflag.UsageError](err)
		if !ok || !strings.HasPrefix(usage.Error(), c.want) || strings.Contains(usage.Error(), "\n") {
			t.Errorf("%s: got %v, want a usage error that begins with %q", c.args, err, c.want)
		}
	}
}

// --deterministic cuts the batch into as many shards as can be, and says which
// numbers of ranks have the same bits.
func TestShards(t *testing.T) {
	for _, c := range []struct{ batch, shards, ranks, wrong int }{{8, 8, 8, 0}, {96, 8, 2, 0}, {100, 4, 2, 0}, {100, 4, 5, 5}, {40, 8, 5, 5}, {6, 2, 2, 3}, {7, 1, 1, 7}} {
		o := model(t, fmt.Sprintf("--deterministic --batch %d", c.batch))
		if o.settings.Shards != c.shards || o.how.Threads != 1 {
			t.Errorf("batch %d: %d shards on %d threads, want %d on one", c.batch, o.settings.Shards, o.how.Threads, c.shards)
		}
		if err := checkShare(o, c.ranks); err != nil && c.wrong != c.ranks {
			t.Errorf("batch %d on %d ranks: %v", c.batch, c.ranks, err)
		}
		if err := checkShare(o, max(c.wrong, 1)); c.wrong > 0 && (err == nil || !strings.HasSuffix(err.Error(), fmt.Sprint("want a number of ranks that divides ", c.shards))) {
			t.Errorf("batch %d on %d ranks: %v", c.batch, c.wrong, err)
		}
	}
}

// grouped is a config whose losses see so many samples together.
type grouped struct {
	algo.Config
	n int
}

func (g grouped) Group() int { return g.n }

// What is seen together stays together: on one rank, and in one virtual shard.
func TestGroupsStayTogether(t *testing.T) {
	for _, c := range []struct {
		batch, group, ranks, shards int
		ok                          bool
	}{{8, 2, 4, 4, true}, {8, 2, 8, 4, false}, {30, 5, 3, 2, true}, {30, 5, 5, 2, false}, {24, 3, 8, 8, true}} {
		o := model(t, fmt.Sprint("--batch ", c.batch))
		o.model = grouped{o.model, c.group}
		if err := checkShare(o, c.ranks); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("in groups of %d: want a multiple of %d", c.group, c.ranks*c.group)) {
			t.Errorf("batch %d on %d ranks, groups of %d: %v", c.batch, c.ranks, c.group, err)
		}
		o.fixedBits = true
		if err := o.fixBits(); err != nil || o.settings.Shards != c.shards {
			t.Errorf("batch %d, groups of %d: %d virtual shards, %v, want %d", c.batch, c.group, o.settings.Shards, err, c.shards)
		}
	}
}

// What the launcher is told of what ranks can share is what they then can: of numbers of
// ranks that it takes for good none is refused, and the others are.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		batch, group int
		fixed        bool
		parts        int
	}{{100, 1, false, 100}, {100, 2, false, 50}, {100, 5, false, 20}, {100, 1, true, 4}, {100, 2, true, 2}, {30, 5, true, 2}, {7, 1, true, 1}} {
		o := model(t, fmt.Sprint("--batch ", c.batch))
		o.model, o.fixedBits = grouped{o.model, c.group}, c.fixed
		if err := o.fixBits(); err != nil {
			t.Fatal(err)
		}
		parts := o.parts()
		if parts != c.parts {
			t.Errorf("%+v: %d parts", c, parts)
		}
		for ranks := 1; ranks <= c.batch; ranks++ {
			if err := checkShare(o, ranks); (err == nil) != (parts%ranks == 0) {
				t.Errorf("%+v: %d parts, and of %d ranks it says %v", c, parts, ranks, err)
			}
		}
	}
}

// A run sees each sample once an epoch, mixed, and those that do not fill the last batch in
// the next epoch's first. Damage stops it, unless it is to be left out.
func TestDataOfARun(t *testing.T) {
	const n, epochs = 10, 2
	o := model(t, "--batch 4 --data synth:train=10")
	src, err := openData(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(src, o.loaderConfig(0, 1, slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	var seen []int64
	for range n * epochs / 4 {
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, b.Indices...)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if slices.IsSorted(seen[:n]) {
		t.Errorf("samples come in order: %v", seen)
	}
	for epoch := range slices.Chunk(seen, n) {
		if got := slices.Compact(slices.Sorted(slices.Values(epoch))); len(got) != n {
			t.Errorf("an epoch has the samples %v", got)
		}
	}
	if l.LeavesOut() {
		t.Error("damage is left out though nobody asked for that")
	}
	o.onBadData = badSkip
	if o.loaderConfig(0, 1, slog.New(slog.DiscardHandler)).Quarantine == nil {
		t.Error("damage is not left out")
	}
}

// A start adds to what the log of the starts before it has.
func TestLogGrows(t *testing.T) {
	out := t.TempDir()
	for range 2 {
		closer, _, file, err := openLog(out, 3, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		file.Info("hello")
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(rundir.Layout(out).Log(3))
	if err != nil || strings.Count(string(text), `"msg":"hello"`) != 2 {
		t.Errorf("%v, the log has\n%s", err, text)
	}
}

// Who keeps a host's run directory notes where the run went on, and nothing of its begin.
func TestKeeperNotesResumes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	o := model(t, "--out "+out)
	dir, err := openDir(o, runInfo{flags: map[string]string{"steps": "9"}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{dir, runInfo{flags: map[string]string{"steps": "20"}}, 4}
	if err := errors.Join(k.Started(0), k.Started(5), k.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := rundir.ReadConfig(out)
	if err != nil || len(c.Resumed) != 1 || c.Resumed[0].Step != 5 || c.Resumed[0].World != 4 || c.Flags["steps"] != "20" {
		t.Errorf("config.json has %+v, %v", c, err)
	}
}

// small runs the program in this process with a small model.
func small(t *testing.T, out string, more ...string) (stdout, stderr string, err error) {
	t.Helper()
	args := append(strings.Fields("--width 4 --latent 3 --batch 4 --steps 2 --samples 2 --threads 1 --print-every 1 --data synth:train=32 --out "+out), more...)
	var o, e strings.Builder
	err = run(t.Context(), args, nil, &o, &e)
	return o.String(), e.String(), err
}

// TestRunDirectory looks at all that a run leaves.
func TestRunDirectory(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	stdout, stderr, err := small(t, out)
	if err != nil || stderr != "" {
		t.Fatalf("%v, stderr %q", err, stderr)
	}
	for _, want := range []string{"bidvl on cpu", "32 built-in pictures (--data synth:train=32), batch 4, 2 steps, into", "step 1/2", "step 2/2", "2 steps done; checkpoint " + out + "/ckpt; samples " + out + "/samples/step-00000002.png"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout has no %q:\n%s", want, stdout)
		}
	}
	for _, name := range []string{"config.json", "metrics.jsonl", "rank-0.log", "ckpt/step-00000002/weights.safetensors", "samples/step-00000002.png"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	c, err := rundir.ReadConfig(out)
	if err != nil || c.World != 1 || c.Flags["width"] != "4" || c.Flags["lr"] != "0.0003" {
		t.Errorf("config.json has %+v, %v", c, err)
	}
	events, err := filepath.Glob(filepath.Join(out, "events", "events.out.tfevents.*"))
	if err != nil || len(events) != 1 {
		t.Errorf("event files: %v, %v", events, err)
	}
}

// TestLogEvery thins out the metrics, also over a resume.
func TestLogEvery(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out, "--log-every", "2", "--steps", "3"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := small(t, out, "--log-every", "2", "--steps", "5", "--resume"); err != nil {
		t.Fatal(err)
	}
	records, err := rundir.ReadMetrics(filepath.Join(out, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []int64
	for _, r := range records {
		steps = append(steps, r.Step)
	}
	if len(steps) != 3 || steps[0] != 0 || steps[1] != 2 || steps[2] != 4 {
		t.Errorf("logged steps %v, want 0, 2, 4", steps)
	}
	c, err := rundir.ReadConfig(out)
	if err != nil || len(c.Resumed) != 1 || c.Resumed[0].Step != 3 {
		t.Errorf("config.json says it went on at %+v, %v", c.Resumed, err)
	}
}

func TestRunFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, out, args, want string }{
		{"data of another size", "a", "--data synth:size=16", "takes 32x32"},
		{"no data", "a", "--data " + filepath.Join(dir, "none"), "no such data set"},
		{"below a file", "file/a", "", "is a file"},
		{"too large", "a", "--batch 1000000000", "this machine has"},
		{"no shuffling", "a", "--net conv64 --data synth:size=64,train=32 --shuffle-memory 1", "want --shuffle-memory of at least 2 MiB, which hold two blocks of --data synth:size=64,train=32, got 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := small(t, filepath.Join(dir, c.out), strings.Fields(c.args)...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a run directory is left behind (%v)", err)
			}
		})
	}
}
