package ckpt

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Every way to damage the newest checkpoint makes ReadLatest use the one before,
// with a warning that names the file.
func TestLatestSkipsDamaged(t *testing.T) {
	edit := func(name string, f func([]byte) []byte) func(string) error {
		return func(path string) error {
			file := filepath.Join(path, name)
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(file, f(b), 0o644)
		}
	}
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	tests := []struct {
		name   string
		damage func(path string) error
		want   []string // in the warning
	}{
		{"empty folder", func(p string) error { return errors.Join(os.RemoveAll(p), os.Mkdir(p, 0o755)) }, []string{"state.json", "missing"}},
		{"no state", func(p string) error { return os.Remove(filepath.Join(p, "state.json")) }, []string{"state.json", "missing"}},
		{"no weights", func(p string) error { return os.Remove(filepath.Join(p, "weights.safetensors")) }, []string{"weights.safetensors", "missing"}},
		{"short weights", edit("weights.safetensors", func(b []byte) []byte { return b[:len(b)-1] }), []string{"weights.safetensors", "bytes, expected"}},
		{"long weights", edit("weights.safetensors", func(b []byte) []byte { return append(b, 0) }), []string{"weights.safetensors", "bytes, expected"}},
		{"one bit", edit("optimizer.safetensors", func(b []byte) []byte { b[len(b)-1] ^= 4; return b }), []string{"optimizer.safetensors", "SHA-256"}},
		{"empty state", edit("state.json", func([]byte) []byte { return nil }), []string{"state.json", "JSON"}},
		{"half a state", edit("state.json", func(b []byte) []byte { return b[:len(b)/2] }), []string{"state.json", "JSON"}},
		{"zeros", edit("state.json", func(b []byte) []byte { return make([]byte, len(b)) }), []string{"state.json", "JSON"}},
		{"other step", edit("state.json", replace(`"step": 50`, `"step": 51`)), []string{"state.json", "changed"}},
		{"other world", edit("state.json", replace(`"world": 2`, `"world": 3`)), []string{"state.json", "changed"}},
		{"later format", edit("state.json", replace(`"format": 1`, `"format": 2`)), []string{"state.json", "written by another version of this program: it has format 2, and this one reads 1"}},
		{"unknown field", edit("state.json", replace(`"epoch"`, `"epock"`)), []string{"state.json", "epock"}},
		{"text after", edit("state.json", func(b []byte) []byte { return append(b, "{}"...) }), []string{"state.json", "not whole JSON"}},
		{"a folder for a file", func(p string) error {
			f := filepath.Join(p, "buffers.safetensors")
			return errors.Join(os.Remove(f), os.Mkdir(f, 0o755))
		}, []string{"buffers.safetensors", "not a regular file"}},
		{"a pipe for a state", func(p string) error {
			f := filepath.Join(p, "state.json")
			return errors.Join(os.Remove(f), syscall.Mkfifo(f, 0o644))
		}, []string{"state.json", "is a pipe"}},
		{"a folder for a state", func(p string) error {
			f := filepath.Join(p, "state.json")
			return errors.Join(os.Remove(f), os.Mkdir(f, 0o755))
		}, []string{"state.json", "is a folder"}},
		{"a state of a terabyte", func(p string) error { return os.Truncate(filepath.Join(p, "state.json"), 1<<40) }, []string{"state.json", "has more than 64 MiB"}},
		{"a file for a checkpoint", func(p string) error { return errors.Join(os.RemoveAll(p), os.WriteFile(p, nil, 0o644)) }, []string{"step-00000050", "not a folder"}},
		{"other name", func(p string) error { return os.Rename(p, filepath.Join(filepath.Dir(p), "step-00000060")) }, []string{"step-00000060", "holds step 50"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			good, bad := mustWrite(t, dir, 25), mustWrite(t, dir, 50)
			if err := tt.damage(bad); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			got, _, _, err := ReadLatest(dir, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil || got != good {
				t.Fatalf("latest is %s, %v; want %s", got, err, good)
			}
			for _, w := range append(tt.want, "level=WARN") {
				if !strings.Contains(log.String(), w) {
					t.Errorf("warning %q does not have %q", log.String(), w)
				}
			}
			if tt.name == "other name" {
				return
			}
			if _, _, err := Read(bad); err == nil {
				t.Error("the damaged checkpoint can be read")
			} else if _, ok := errors.AsType[*DamagedError](err); !ok {
				t.Errorf("error %v is not a DamagedError", err)
			}
		})
	}
}

// Of several damaged checkpoints the newest is the one that the error tells of: it is the
// one whose copy costs least.
func TestAllDamaged(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int64{1, 2} {
		if err := os.Remove(filepath.Join(mustWrite(t, dir, step), "state.json")); err != nil {
			t.Fatal(err)
		}
	}
	_, _, _, err := ReadLatest(dir, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), Name(2)) || strings.Contains(err.Error(), Name(1)) {
		t.Errorf("error %v, want one that names %s alone", err, Name(2))
	}
}

// A disk that fails is no damage: an older checkpoint is not taken, as if the newest were
// lost for good. Links in a circle stand for such a disk.
func TestFailingDiskIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1)
	state := filepath.Join(mustWrite(t, dir, 2), "state.json")
	if err := errors.Join(os.Remove(state), os.Symlink("state.json", state)); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := ReadNewest(dir, func(err error) { t.Errorf("skipped: %v", err) })
	if _, damaged := errors.AsType[*DamagedError](err); damaged || !errors.Is(err, syscall.ELOOP) {
		t.Errorf("error %v, want that of the disk", err)
	}
	if step, err := NewestStep(dir); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("the newest is said to be %d: error %v, want that of the disk", step, err)
	}
}

// NewestStep goes by files and their sizes: one that is torn, or that a copy has only
// begun, is none.
func TestNewestStep(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewestStep(dir); !errors.Is(err, ErrNone) {
		t.Errorf("of an empty folder: %v", err)
	}
	mustWrite(t, dir, 3)
	torn := mustWrite(t, dir, 12)
	if got, err := NewestStep(dir); err != nil || got != 12 {
		t.Errorf("step %d, %v; want 12", got, err)
	}
	if err := os.Truncate(filepath.Join(torn, "weights.safetensors"), 10); err != nil {
		t.Fatal(err)
	}
	if got, err := NewestStep(dir); err != nil || got != 3 {
		t.Errorf("step %d, %v; want 3, since that of 12 is torn", got, err)
	}
}

func TestLatestNone(t *testing.T) {
	dir := t.TempDir()
	discard := slog.New(slog.DiscardHandler)
	for _, d := range []string{dir, filepath.Join(dir, "missing")} {
		if _, _, _, err := ReadLatest(d, discard); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v, want ErrNone", d, err)
		}
	}
	if err := os.Remove(filepath.Join(mustWrite(t, dir, 1), "state.json")); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{".tmp-step-00000009", "step-9", "best", "step-000000000009"} {
		if err := os.Mkdir(filepath.Join(dir, other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, _, _, err := ReadLatest(dir, discard)
	if _, ok := errors.AsType[*DamagedError](err); !ok || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "none of the 1 checkpoints") {
		t.Errorf("all damaged: %v, want a DamagedError", err)
	}
	if _, _, err := Read(filepath.Join(dir, "step-00000077")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading a missing checkpoint: %v", err)
	}
}

// A file where the folder of checkpoints should be is said, and what to do.
func TestFileForFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ckpt")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Steps(file); err == nil || err.Error() != file+" is a file, where a run has a folder of checkpoints: move it away" {
		t.Errorf("error %v", err)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int64{10, 20, 30, 40, 50} {
		mustWrite(t, dir, step)
	}
	if err := os.Truncate(filepath.Join(dir, Name(40), "weights.safetensors"), 3); err != nil {
		t.Fatal(err)
	}
	// What a Prune has left that was killed goes at the next.
	if err := os.MkdirAll(filepath.Join(dir, oldPrefix+Name(10), "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		keep int
		want string
	}{
		{0, "step-00000010 step-00000020 step-00000030 step-00000040 step-00000050"},
		{3, "step-00000020 step-00000030 step-00000040 step-00000050"}, // 40 does not count
		{1, "step-00000050"},
		{1, "step-00000050"},
	}
	for _, s := range steps {
		if err := Prune(dir, s.keep, 50); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); got != s.want {
			t.Errorf("keep %d: left %s, want %s", s.keep, got, s.want)
		}
	}
	if err := Prune(dir, -1, 50); err == nil {
		t.Error("keep -1 gives no error")
	}
}

// One that is replaced and cannot be removed is out of the way all the same.
func TestReplacedThatStays(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("wants an ordinary user, and this is root, who may remove anything; TestReplaceAndSweep and TestPruneAfterGoingBack are for both")
	}
	dir := t.TempDir()
	if err := os.Chmod(mustWrite(t, dir, 5), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		hidden, _ := filepath.Glob(filepath.Join(dir, oldPrefix+"*")) // the pattern is well-formed
		for _, path := range hidden {
			_ = os.Chmod(path, 0o755)
		}
	})
	s, groups := sample(5)
	path, err := Write(dir, s, groups)
	if err != nil {
		t.Fatal(err)
	}
	got, gotGroups, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, s, gotGroups, groups)
}

// A run that has gone back behind a damaged checkpoint keeps what it writes then: the
// damaged one, whose size may be right, is newer and does not count.
func TestPruneAfterGoingBack(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 5)
	file := filepath.Join(mustWrite(t, dir, 10), "weights.safetensors")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	want := mustWrite(t, dir, 7)
	if err := Prune(dir, 1, 7); err != nil {
		t.Fatal(err)
	}
	if got, _, _, err := ReadLatest(dir, slog.New(slog.DiscardHandler)); err != nil || got != want {
		t.Errorf("latest is %s, %v; want %s", got, err, want)
	}
	if got := names(t, dir); got != "step-00000007 step-00000010" {
		t.Errorf("left %s", got)
	}
}

// A run that goes on writes checkpoints and removes old ones while others look for its
// newest. Whatever is removed under their hands, they find one, and nothing is damaged.
func TestLatestOfARunThatGoesOn(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1)
	const last = 20
	ended := make(chan error, 1)
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		for step := int64(2); step <= last; step++ {
			s, groups := sample(step)
			if _, err := Write(dir, s, groups); err != nil {
				ended <- err
				return
			}
			if err := Prune(dir, 1, step); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	})
	var log bytes.Buffer
	warn := slog.New(slog.NewTextHandler(&log, nil))
	var newest int64
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		path, s, groups, err := ReadLatest(dir, warn)
		if err != nil || s.Step < newest || filepath.Base(path) != Name(s.Step) || len(groups) != 4 {
			t.Fatalf("%s, step %d with %d groups after step %d: %v", path, s.Step, len(groups), newest, err)
		}
		newest = s.Step
	}
	if newest != last || log.Len() > 0 {
		t.Errorf("the newest is %d, warned of %q", newest, log.String())
	}
}

func TestNameOrder(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 99_999_999)
	want := mustWrite(t, dir, 100_000_000)
	if got, _, _, err := ReadLatest(dir, slog.New(slog.DiscardHandler)); err != nil || got != want {
		t.Errorf("latest %s, %v; want %s", got, err, want)
	}
}
