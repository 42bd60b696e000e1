package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run that failed before its first step is in nobody's way: another may begin in its folder,
// and it may itself go on. Once it has a step, or had one, it is kept.
func TestCreateInPlaceOfFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		after func(d *Dir) error
		kept  bool
	}{
		"failed":         {func(d *Dir) error { return d.Failed("no such weights") }, false},
		"failed twice":   {func(d *Dir) error { return errors.Join(d.Failed("a"), d.Resumed(Resume{}, nil), d.Failed("b")) }, false},
		"went on":        {func(d *Dir) error { return errors.Join(d.Failed("a"), d.Resumed(Resume{}, nil)) }, true},
		"has a line":     {func(d *Dir) error { return errors.Join(write(d.MetricsFile(), "{}\n"), d.Failed("a")) }, true},
		"got a line":     {func(d *Dir) error { return errors.Join(d.Failed("a"), write(d.MetricsFile(), "{}\n")) }, true},
		"checkpoint":     {func(d *Dir) error { return errors.Join(os.Mkdir(filepath.Join(d.Ckpt(), "s"), 0o755), d.Failed("a")) }, true},
		"had one":        {func(d *Dir) error { return errors.Join(d.Saved(2), d.Failed("a")) }, true},
		"went on from 2": {func(d *Dir) error { return errors.Join(d.Resumed(Resume{Step: 2}, nil), d.Failed("a")) }, true},
		"diverged":       {func(d *Dir) error { return errors.Join(d.Diverged("at step 0"), d.Failed("a")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run")
			first, err := Create(path, testConfig(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.after(first); err != nil {
				t.Fatal(err)
			}
			if _, err := Create(path, testConfig(), 2); err == nil {
				t.Error("it was replaced while it ran")
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			before := first.Config().Digest
			second, err := Create(path, testConfig(), 2)
			if err == nil {
				err = second.Close()
			}
			if tt.kept && (err == nil || !strings.Contains(err.Error(), "holds another run")) || !tt.kept && err != nil {
				t.Errorf("another begins there: %v", err)
			}
			c, err := ReadConfig(path)
			if err != nil || (c.Digest == before) != tt.kept || !tt.kept && c.Failed != "" {
				t.Errorf("then there is %+v, %v", c, err)
			}
		})
	}
}

// Where the folder has been moved away nothing is noted in another run's.
func TestFailedElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	first, err := Create(path, testConfig(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+"-moved"); err != nil {
		t.Fatal(err)
	}
	second, err := Create(path, testConfig(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Failed("a"), first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if c, err := ReadConfig(path); err != nil || c.Failed != "" || c.Digest != second.Config().Digest {
		t.Errorf("%+v, %v", c, err)
	}
}

func write(file, text string) error { return os.WriteFile(file, []byte(text), 0o644) }
