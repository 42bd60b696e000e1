package ckpt

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"ebtrain/data/atomicfile"
)

// ErrNone says that a folder holds no checkpoint at all, or does not exist.
var ErrNone = errors.New("no checkpoint")

var stepName = regexp.MustCompile(`^step-([0-9]{8,18})$`)

// ReadLatest is ReadNewest, with a warning of each checkpoint that is skipped.
func ReadLatest(dir string, log *slog.Logger) (string, State, map[string][]Named, error) {
	return ReadNewest(dir, func(err error) { WarnSkipped(log, err) })
}

// WarnSkipped says that a checkpoint was skipped, and why.
func WarnSkipped(log *slog.Logger, err error) {
	log.Warn("checkpoint skipped", "problem", err.Error())
}

// ReadNewest reads the checkpoint of the highest step in the folder dir that is whole:
// every checksum is verified. Damaged ones are skipped, and each is reported with an error
// that names the file and what is wrong with it. The error is ErrNone if there is no
// checkpoint; if there are some and all are damaged it is a *DamagedError, so that nobody
// starts again from nothing by accident.
//
// A run may write and remove checkpoints meanwhile.
func ReadNewest(dir string, skipped func(error)) (string, State, map[string][]Named, error) {
	fail := func(err error) (string, State, map[string][]Named, error) { return "", State{}, nil, err }
	steps, err := Steps(dir)
	if err != nil {
		return fail(err)
	}
	if len(steps) == 0 {
		return fail(fmt.Errorf("%w in %s", ErrNone, dir))
	}
	var first error
	for _, step := range slices.Backward(steps) {
		path := filepath.Join(dir, Name(step))
		s, groups, err := readNamed(path)
		if err == nil {
			return path, s, groups, nil
		}
		if _, gone := os.Lstat(path); errors.Is(gone, os.ErrNotExist) {
			return ReadNewest(dir, skipped) // its run has removed it, and has newer ones
		}
		if _, ok := errors.AsType[*DamagedError](err); !ok {
			return fail(err)
		}
		skipped(err)
		if first == nil {
			first = err
		}
	}
	return fail(noneUsable(len(steps), dir, first))
}

// readNamed is Read, of a checkpoint that lies in the folder of its step.
func readNamed(path string) (State, map[string][]Named, error) {
	s, groups, err := Read(path)
	if err == nil {
		err = checkName(path, s)
	}
	return s, groups, err
}

// noneUsable says that all n checkpoints in dir are damaged, the first that was read as err
// has it.
func noneUsable(n int, dir string, err error) error {
	return fmt.Errorf("none of the %d checkpoints in %s can be used: %w: put a copy of one there, or begin anew with another --out", n, dir, err)
}

// Whole are the steps of the checkpoints in dir that are whole, rising: every checksum is
// verified. Damaged ones are skipped and reported, and if all are that is the error, as in
// ReadNewest; it has none where there is no checkpoint at all. One that its run removes
// meanwhile is left out.
func Whole(dir string, skipped func(error)) ([]int64, error) {
	steps, err := Steps(dir)
	if err != nil {
		return nil, err
	}
	var whole []int64
	var first error
	for _, step := range steps {
		path := filepath.Join(dir, Name(step))
		_, _, err := readNamed(path)
		if _, gone := os.Lstat(path); errors.Is(gone, os.ErrNotExist) {
			continue
		}
		if _, ok := errors.AsType[*DamagedError](err); err != nil && !ok {
			return nil, err
		}
		if err == nil {
			whole = append(whole, step)
			continue
		}
		skipped(err)
		if first == nil {
			first = err
		}
	}
	if whole == nil && first != nil {
		return nil, noneUsable(len(steps), dir, first)
	}
	return whole, nil
}

// NewestStep is that of NewestWhole, without a word of others.
func NewestStep(dir string) (int64, error) { return NewestWhole(dir, func(error) {}) }

// NewestWhole is the highest step of which dir has a checkpoint that looks whole: to be
// quick it checks state.json and sizes, not checksums. Damaged ones are skipped, and each is
// reported. The error is ErrNone if there is none; a disk that fails is another, as in
// ReadNewest.
func NewestWhole(dir string, skipped func(error)) (int64, error) {
	steps, err := Steps(dir)
	if err != nil {
		return 0, err
	}
	for _, step := range slices.Backward(steps) {
		err := look(filepath.Join(dir, Name(step)))
		if err == nil {
			return step, nil
		}
		if errors.Is(err, os.ErrNotExist) { // its run has removed it
			continue
		}
		if _, ok := errors.AsType[*DamagedError](err); !ok {
			return 0, err
		}
		skipped(err)
	}
	return 0, fmt.Errorf("%w in %s", ErrNone, dir)
}

// Prune removes what a writer that was killed has left in dir, and old checkpoints until
// the keep newest whole ones are left, of those up to step last, which the run has just
// written or goes on from. Damaged ones that are older go too; they do not count. To be
// quick it checks state.json and sizes, not checksums. So those of later steps do not count
// either, and stay: a run goes on from before them only if their content is wrong. keep 0
// keeps all.
func Prune(dir string, keep int, last int64) error {
	if keep < 0 {
		return fmt.Errorf("prune %s: cannot keep %d checkpoints, expected 0 (all) or more", dir, keep)
	}
	sweep(dir)
	if keep == 0 {
		return nil
	}
	steps, err := Steps(dir)
	if err != nil {
		return err
	}
	whole := 0
	for _, step := range slices.Backward(steps) {
		path := filepath.Join(dir, Name(step))
		if step > last {
			continue
		}
		if whole >= keep {
			if err := remove(path); err != nil {
				return fmt.Errorf("prune %s: %w", dir, err)
			}
		} else if look(path) == nil {
			whole++
		}
	}
	return nil
}

// remove hides the checkpoint first, so that half of it is never seen.
func remove(path string) error {
	old := hidden(oldPrefix, path)
	if err := os.Rename(path, old); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// look says why a checkpoint is not whole, by what is quick to see.
func look(path string) error {
	m, err := readManifest(path)
	if err != nil {
		return err
	}
	for name, e := range m.Files {
		if err := checkSize(filepath.Join(path, name), e); err != nil {
			return err
		}
	}
	return nil
}

// Steps are those of the checkpoints in dir, rising, whether whole or not; none if
// dir does not exist.
func Steps(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%s is a file, where a run has a folder of checkpoints: move it away", dir)
	}
	if err != nil {
		return nil, err
	}
	var steps []int64
	for _, e := range entries {
		m := stepName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		step, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.Name()), err)
		}
		if Name(step) == e.Name() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}
