package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ebtrain/data/atomicfile/powercut"
)

// A run directory survives a power cut as soon as it is made, with the folders in it and
// those that it lies in.
func TestSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		d, err := Create(filepath.Join(dir, "runs", "a"), Config{Program: "train"}, map[string]int{"seed": 1})
		if err != nil {
			return err
		}
		return d.Close()
	})
}

// And metrics.jsonl does once it is synced: a checkpoint promises the lines before it.
func TestMetricsSurvivePowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		m, err := OpenMetrics(filepath.Join(dir, "metrics.jsonl"), 0, nil)
		if err != nil {
			return err
		}
		return errors.Join(m.Append(Record{Step: 0}), m.Append(Record{Step: 1}), m.Sync()) // Close would sync, too
	})
}

// What a resume cuts off metrics.jsonl is gone for good before the run goes on.
func TestCutSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		path := filepath.Join(dir, "metrics.jsonl")
		m, err := OpenMetrics(path, 0, nil)
		if err != nil {
			return err
		}
		if err := errors.Join(m.Append(Record{Step: 0}), m.Append(Record{Step: 1}), m.Close()); err != nil {
			return err
		}
		_, err = OpenMetrics(path, 1, nil)
		return err
	})
}

// So does one in folders that somebody else made a moment before, and did not sync: a
// launcher for its logs, another rank.
func TestOthersFoldersSurvivePowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		path := filepath.Join(dir, "runs", "a")
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		d, err := Create(path, Config{Program: "train"}, map[string]int{"seed": 1})
		if err != nil {
			return err
		}
		return d.Close()
	})
}
