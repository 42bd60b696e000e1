package rundir

import (
	"errors"
	"path/filepath"
	"testing"

	"ebtrain/data/atomicfile/powercut"
)

// A run directory survives a power cut as soon as it is made, with its folders, and
// so does metrics.jsonl once it is synced: a checkpoint promises the lines before it.
func TestSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) (err error) {
		d, err := Create(filepath.Join(dir, "runs", "a"), Config{Program: "train"}, map[string]int{"seed": 1})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		m, err := d.Metrics(0, nil)
		if err != nil {
			return err
		}
		// Never closed, which would sync it too.
		return errors.Join(m.Append(Record{Step: 0}), m.Append(Record{Step: 1}), m.Sync())
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
