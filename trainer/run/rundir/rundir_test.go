package rundir

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type settings struct {
	Batch int     `json:"batch"`
	LR    float64 `json:"lr"`
	Net   struct {
		Width int `json:"width"`
	} `json:"net"`
}

func testConfig() Config {
	return Config{
		Program: "train", Args: []string{"--batch", "64"}, World: 2,
		Flags:   map[string]string{"batch": "64", "out": "runs/a<b>"},
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func create(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Create(path, testConfig(), settings{Batch: 64, LR: 3e-4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // some tests have closed it
	return d
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not have %q", err, p)
		}
	}
}

func TestCreateOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs", "a")
	d := create(t, path)
	for _, f := range []string{d.Ckpt(), d.Samples(), d.Events()} {
		if st, err := os.Stat(f); err != nil || !st.IsDir() {
			t.Errorf("%s: %v, want a folder", f, err)
		}
	}
	if got, want := d.Log(3), filepath.Join(path, "rank-3.log"); got != want {
		t.Errorf("log %s, want %s", got, want)
	}
	c, err := ReadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Program != "train" || c.World != 2 || c.Flags["out"] != "runs/a<b>" || !c.Started.Equal(testConfig().Started) || c.Build.Go == "" {
		t.Errorf("config.json reads %+v", c)
	}
	if string(c.Settings) != `{"batch":64,"lr":0.0003,"net":{"width":0}}` {
		t.Errorf("settings %s", c.Settings)
	}

	_, err = Open(path)
	wantError(t, err, path, "in use by another process")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(path, ".config.json.tmp-1-1")
	if err := os.WriteFile(left, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err = Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	if err := d.CheckSettings(settings{Batch: 64, LR: 3e-4}); err != nil {
		t.Errorf("equal settings: %v", err)
	}
	other := settings{Batch: 32, LR: 3e-4}
	other.Net.Width = 8
	wantError(t, d.CheckSettings(other), path, "batch: was 64, now 32; net.width: was 0, now 8", "another --out")
	if err := d.Resumed(Resume{Step: 25, World: 4, Args: []string{"--resume"}}, map[string]string{"steps": "50"}); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConfig(path); err != nil || len(c.Resumed) != 1 || c.Resumed[0].Step != 25 || c.Resumed[0].Time.IsZero() || c.World != 2 {
		t.Errorf("after a resume: %+v, %v", c, err)
	}
	if err := d.Diverged("loss is NaN at step 30"); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConfig(path); err != nil || c.Diverged != "loss is NaN at step 30" || len(c.Resumed) != 1 {
		t.Errorf("after it diverged: %+v, %v", c, err)
	}
	if err := d.Resumed(Resume{Step: 25, World: 4}, nil); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConfig(path); err != nil || c.Diverged != "" {
		t.Errorf("after it went on: %+v, %v", c, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(path string) error
		want    []string
	}{
		{"another run", func(p string) error {
			d, err := Create(p, testConfig(), 1)
			return errors.Join(err, d.Close())
		}, []string{"holds another run of 2026-01-02 03:04:05", "--resume", "another --out"}},
		{"a damaged run", func(p string) error { return os.WriteFile(filepath.Join(p, "config.json"), nil, 0o644) }, []string{"holds another run:", "--resume"}},
		{"a link to nowhere", func(p string) error { return errors.Join(os.Remove(p), os.Symlink("nowhere", p)) }, []string{"is a link to nowhere, which is not there", "another --out"}},
		{"other files", func(p string) error { return os.WriteFile(filepath.Join(p, "thesis.tex"), nil, 0o644) }, []string{"not empty", "thesis.tex", "another --out"}},
		{"a file", func(p string) error { return errors.Join(os.Remove(p), os.WriteFile(p, nil, 0o644)) }, []string{"is a file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := t.TempDir()
			if err := tt.prepare(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(filepath.Join(path, "config.json"))
			_, err := Create(path, testConfig(), 2)
			wantError(t, err, append(tt.want, path)...)
			after, _ := os.ReadFile(filepath.Join(path, "config.json"))
			if string(before) != string(after) {
				t.Error("config.json was changed")
			}
		})
	}
}

// A run that has done no step, as one whose step did not fit into the memory, is said to
// be nothing to lose; not so while it runs, or once it has a line or a checkpoint.
func TestCreateBesideIdleRun(t *testing.T) {
	const hint = "it has done no step"
	path := filepath.Join(t.TempDir(), "run")
	d, err := Create(path, testConfig(), 1)
	if err != nil {
		t.Fatal(err)
	}
	says := func(when string, want bool) {
		t.Helper()
		if _, err := Create(path, testConfig(), 2); err == nil || strings.Contains(err.Error(), hint) != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	says("while it runs", false)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	says("after its end", true)
	if err := os.Mkdir(filepath.Join(d.Ckpt(), "step-00000001"), 0o755); err != nil {
		t.Fatal(err)
	}
	says("with a checkpoint", false)
	if err := errors.Join(os.Remove(filepath.Join(d.Ckpt(), "step-00000001")), os.WriteFile(d.MetricsFile(), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	says("with a file of lines that has none", true)
	if err := os.WriteFile(d.MetricsFile(), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	says("with a line", false)
}

// Logs of ranks may be there, and what a process has left that was killed as it began a
// run there.
func TestCreateBesideLogs(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"rank-0.log", "rank-2.out", "rank-2.error.json", ".config.json.tmp-4411-1234567890", ".lock"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("hello\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	create(t, path)
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct{ name, config, want string }{
		{"no config", "", "not a run directory"},
		{"torn", "{", "config.json"},
		{"other format", `{"format":9}`, "was written by another version of this program: it has format 9, and this one reads 1"},
		{"edited", `{"format":1,"settings":{"lr":1},"digest":"sha256:0"}`, "changed by hand"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := t.TempDir()
			if tt.config != "" {
				if err := os.WriteFile(filepath.Join(path, "config.json"), []byte(tt.config), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Open(path)
			wantError(t, err, "cannot resume", path, tt.want)
		})
	}
	path := filepath.Join(t.TempDir(), "missing")
	_, err := Open(path)
	wantError(t, err, path, "not a run directory")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open made %s", path)
	}
}

// A run that cannot be written is told where it goes on: another --out has no run.
func TestOpenReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	if err := create(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(lockFile(path)), os.Mkdir(lockFile(path), 0o755)); err != nil { // as unwritable for root, too
		t.Fatal(err)
	}
	_, err := Open(path)
	wantError(t, err, "the run directory "+path+" cannot be written: ", "a run goes on where it can be written: make it so, or copy it to where it can and give that as --out")
}

func TestDigest(t *testing.T) {
	type ab struct {
		A int
		B uint64
	}
	type ba struct {
		B uint64
		A int
	}
	const big = 1<<63 + 1 // a float64 cannot hold it
	base, err := Digest(ab{1, big})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		v    any
		same bool
	}{
		{"other order", ba{big, 1}, true},
		{"a map", map[string]any{"B": uint64(big), "A": 1}, true},
		{"last bit", ab{1, big - 1}, false},
		{"another field", map[string]any{"B": uint64(big), "A": 1, "C": nil}, false},
	}
	for _, tt := range tests {
		if got, err := Digest(tt.v); err != nil || (got == base) != tt.same {
			t.Errorf("%s: %s, %v; equal to %s: want %v", tt.name, got, err, base, tt.same)
		}
	}
	if _, err := Digest(func() {}); err == nil {
		t.Error("a function has a digest")
	}
	// SHA-256 of {"a":1}, from sha256sum.
	const want = "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
	if got, err := Digest(map[string]int{"a": 1}); err != nil || got != want {
		t.Errorf("digest %s, %v; want %s", got, err, want)
	}
}

func TestDifferences(t *testing.T) {
	was := `{"a":1,"b":{"c":[1,2],"d":"x"},"e":{}}`
	now := `{"a":1.0,"b":{"c":[1,3]},"e":{"f":null}}`
	got, err := Differences(json.RawMessage(was), json.RawMessage(now))
	want := `a: was 1, now 1.0|b.c: was [1,2], now [1,3]|b.d: was "x", now absent|e.f: was absent, now null|e: was {}, now absent`
	if err != nil || strings.Join(got, "|") != want {
		t.Errorf("got  %s, %v\nwant %s", strings.Join(got, "|"), err, want)
	}
}
