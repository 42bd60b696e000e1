package rundir

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"ebtrain/data/atomicfile"
)

// Dir is an open, locked run directory.
type Dir struct {
	Layout
	config Config
	lock   *os.File
}

// Create makes the run directory at path, which must not exist or be empty
// (the logs of ranks may be there), or hold a run of which Failed has noted that it came
// to nothing. settings is what defines the computation; it fills c.Settings and c.Digest.
// Format, Started and Build are filled too if they are zero. An error leaves another run
// as it was.
func Create(path string, c Config, settings any) (*Dir, error) {
	canonical, err := Canonical(settings)
	if err != nil {
		return nil, fmt.Errorf("settings of the run %s: %w", path, err)
	}
	c.Format, c.Settings, c.Digest = configFormat, canonical, digestOf(canonical)
	if c.Started.IsZero() {
		c.Started = time.Now().UTC().Round(time.Second)
	}
	if c.Build.Go == "" {
		c.Build = ThisBuild()
	}
	if c.Folder, err = os.Getwd(); err != nil {
		return nil, err
	}
	if err := checkFree(path); err != nil {
		return nil, err
	}
	err = atomicfile.MakeDir(path)
	if err == nil {
		err = atomicfile.SyncPath(path) // all of it: a launcher may have made it, for its logs
	}
	if err != nil {
		return nil, fmt.Errorf("the run directory %s cannot be made: %w: give another --out", path, err)
	}
	return locked(path, "give another --out", func(d *Dir) error {
		if err := checkFree(path); err != nil { // another may have been quicker
			return err
		}
		d.config = c
		if err := d.write(); err != nil {
			return elsewhere(path, err)
		}
		return d.makeFolders()
	})
}

// Open opens the run directory at path to go on with its run.
func Open(path string) (*Dir, error) {
	if _, err := ReadConfig(path); err != nil { // before a lock file is made
		return nil, fmt.Errorf("cannot resume: %w", err)
	}
	const elsewhere = "a run goes on where it can be written: make it so, or copy it to where it can and give that as --out"
	return locked(path, elsewhere, func(d *Dir) error {
		c, err := ReadConfig(path)
		if err != nil {
			return err
		}
		d.config = c
		return errors.Join(atomicfile.Sweep(path), d.makeFolders())
	})
}

// locked is a Dir that holds the lock and has been prepared by f. Where it cannot be
// written, otherwise says what to do.
func locked(path, otherwise string, f func(*Dir) error) (*Dir, error) {
	lock, err := lockDir(path, otherwise)
	if err != nil {
		return nil, err
	}
	d := &Dir{Layout: Layout(path), lock: lock}
	if err := f(d); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// Config is the content of config.json.
func (d *Dir) Config() Config { return d.config }

// Close unlocks the directory.
func (d *Dir) Close() error { return d.lock.Close() }

// CheckSettings says whether settings are those of the run. The error lists
// each difference.
func (d *Dir) CheckSettings(settings any) error {
	now, err := Canonical(settings)
	if err != nil {
		return err
	}
	if digestOf(now) == d.config.Digest {
		return nil
	}
	diff, err := Differences(d.config.Settings, now)
	if err != nil {
		return err
	}
	return fmt.Errorf("the run in %s has other settings (%s): a resumed run computes the same thing, so leave them as they were, or give another --out",
		d.Path(), strings.Join(diff, "; "))
}

// Resumed notes in config.json that the run goes on, and with which flags: the
// next resume begins with them.
func (d *Dir) Resumed(r Resume, flags map[string]string) error {
	if r.Time.IsZero() {
		r.Time = time.Now().UTC().Round(time.Second)
	}
	if r.Commit == "" {
		r.Commit = ThisBuild().Commit
	}
	d.config.Resumed = append(d.config.Resumed, r)
	d.config.Flags, d.config.Diverged, d.config.Failed = flags, "", ""
	var err error
	if d.config.Folder, err = os.Getwd(); err != nil {
		return err
	}
	return d.write()
}

// Saved notes in config.json that the checkpoint of a step is in place, so that a run whose
// checkpoints are lost is known from one that has had none.
func (d *Dir) Saved(step int64) error {
	d.config.Saved = step
	return d.write()
}

// Diverged notes in config.json that the run came apart, in the words that it ends with,
// so that another program need not read them; Resumed takes the note back.
func (d *Dir) Diverged(words string) error {
	d.config.Diverged = words
	return d.write()
}

// Metrics opens metrics.jsonl for the lines of step and later ones; see
// OpenMetrics.
func (d *Dir) Metrics(step int64, kept func(Record)) (*Metrics, error) {
	return OpenMetrics(d.MetricsFile(), step, kept)
}

func (d *Dir) write() error {
	text, err := d.config.text()
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(d.ConfigFile(), text)
}

// elsewhere is err, of a run that cannot begin at path, with what to do.
func elsewhere(path string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: make room in %s, or give another --out", err, path)
	}
	return fmt.Errorf("%w: give another --out", err)
}

func (d *Dir) makeFolders() error {
	for _, f := range []string{d.Ckpt(), d.Samples(), d.Events()} {
		if err := os.MkdirAll(f, 0o777); errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("%s is a file, where a run has a folder: move it away", f)
		} else if err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(d.Path()) // or a power cut takes the checkpoints in them
}

// harmless are names that may be in a directory before its run begins: hidden
// files that this package makes, and what a launcher or an experiment writes first.
var harmless = regexp.MustCompile(`^(\.lock|rank-[0-9]+\.(log|out|error\.json)|flight\.txt|cell\.json|console\.log)$`)

// checkFree says why path cannot become a run directory, if it cannot.
func checkFree(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s cannot be a run directory: it, or what it lies in, is a file: give another --out", path)
	}
	if errors.Is(err, syscall.EMFILE) { // another folder is no help
		return fmt.Errorf("the run directory %s cannot be read: %w", path, err)
	}
	if err != nil {
		return fmt.Errorf("the run directory %s cannot be read: %w: give another --out", path, err)
	}
	for _, e := range entries {
		if e.Name() != "config.json" {
			continue
		}
		if failed(path) {
			return nil
		}
		return holdsRun(path)
	}
	for _, e := range entries {
		if !harmless.MatchString(e.Name()) && !atomicfile.IsTemporary(e.Name()) {
			return fmt.Errorf("%s is not empty (it has %s) and is not a run directory: give another --out", path, e.Name())
		}
	}
	return nil
}
