package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ebtrain/data/atomicfile"
	"ebtrain/ddp/exec"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/world"
)

// keeper keeps the run directory of a host that does not see rank 0's: config and
// checkpoints, so that the run can go on there, and its ranks' logs. What is
// shown and measured is rank 0's. It implements loop.Observer.
type keeper struct {
	dir   *rundir.Dir
	info  runInfo
	world int
}

// Started notes that a run goes on.
func (k *keeper) Started(step int64) error {
	if step == 0 && !k.info.goesOn {
		return nil
	}
	return k.dir.Resumed(rundir.Resume{Step: step, World: k.world, Time: time.Now().UTC(), Args: k.info.args, Commit: rundir.ThisBuild().Commit}, k.info.flags)
}

// noteFailed notes in the run's config.json that it ends with err, if that comes before its
// first step: the next try may have the folder.
func noteFailed(dir *rundir.Dir, err error) error {
	if err == nil || errors.Is(err, cliflag.ErrStopped) {
		return err
	}
	failed := dir.Failed(err.Error())
	if failed == nil {
		return err
	}
	if why, ok := errors.AsType[syscall.Errno](failed); ok && errors.Is(err, why) {
		return err // as where the disk is full: it is said once
	}
	return errors.Join(err, failed)
}

// Saved notes that there is a checkpoint here.
func (k *keeper) Saved(step int64) error { return k.dir.Saved(step) }

// Saving is that of recorder, without metrics.
func (k *keeper) Saving(int64) error { return advised(k.dir.InPlace()) }

// Stepped does nothing, and so do the others.
func (k *keeper) Stepped(loop.Record) error         { return nil }
func (k *keeper) Sampled(int64, *exec.Tensor) error { return nil }
func (k *keeper) Ended(int64) error                 { return nil }

// Close unlocks the directory.
func (k *keeper) Close() error { return k.dir.Close() }

// makeDirs returns on all ranks when each sees a run directory, which rank 0 has
// made already where it is: on hosts that do not see that one, the first rank
// makes one of their own, and is its keeper. All others get nil.
func makeDirs(ctx context.Context, o *options, info runInfo, w *world.World) (k *keeper, err error) {
	own, forget, err := apart(ctx, o.out, w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, forget()) }()
	hosts := w.Hosts()
	if own && slices.Index(hosts, hosts[w.Rank()]) == w.Rank() {
		dir, err := openDir(o, info, w.Size())
		if err != nil {
			return nil, err
		}
		k = &keeper{dir, info, w.Size()}
	}
	if err := w.Barrier(ctx, "run directory"); err != nil {
		if k != nil {
			err = errors.Join(noteFailed(k.dir, err), k.Close())
		}
		return nil, err
	}
	return k, nil
}

// apart says whether this rank does not see the directory at path that rank 0
// sees: rank 0 puts a file there, which forget removes.
func apart(ctx context.Context, path string, w *world.World) (own bool, forget func() error, err error) {
	forget = func() error { return nil }
	var mark []byte
	if w.Rank() == 0 && w.Size() > 1 {
		if mark, forget, err = leaveMark(path); err != nil {
			return false, forget, fmt.Errorf("--out: %w", err)
		}
	}
	marks, err := w.Exchange(ctx, "mark of the run directory", mark)
	if err != nil {
		return false, forget, errors.Join(err, forget())
	}
	if w.Rank() == 0 {
		return false, forget, nil
	}
	if _, err := os.Stat(markFile(path, marks[0])); err == nil {
		return false, forget, nil
	}
	// A network file system may remember that there was no such directory, until
	// it is made.
	if err := atomicfile.MakeDir(path); err != nil {
		return false, forget, fmt.Errorf("--out: %w", err)
	}
	_, err = os.Stat(markFile(path, marks[0]))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, forget, fmt.Errorf("--out: %w", err)
	}
	return err != nil, forget, nil
}

// leaveMark puts a file into the directory at path, by whose name it is known again. Those
// that a rank has left which was killed are removed: this one has locked the directory.
func leaveMark(path string) (mark []byte, forget func() error, err error) {
	forget = func() error { return nil }
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), markPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(path, e.Name())))
		}
	}
	if err != nil {
		return nil, forget, err
	}
	mark = make([]byte, 8)
	rand.Read(mark)
	file := markFile(path, mark)
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		return nil, forget, err
	}
	return mark, func() error { return os.Remove(file) }, nil
}

const markPrefix = ".seen-"

func markFile(path string, mark []byte) string {
	return filepath.Join(path, markPrefix+hex.EncodeToString(mark))
}
