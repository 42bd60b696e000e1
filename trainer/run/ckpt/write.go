package ckpt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ebtrain/data/atomicfile"
)

// Hidden names. What has one is not a checkpoint (yet, or any more).
const (
	tmpPrefix = ".tmp-"
	oldPrefix = ".old-"
)

// Name is the name of the checkpoint after step steps: "step-00000025".
func Name(step int64) string { return fmt.Sprintf("step-%08d", step) }

// Write makes the checkpoint Name(s.Step) in the folder dir, which is created
// if needed, and returns its path. When it returns nil the checkpoint survives
// a power cut. One that exists under the same name is replaced, and removed only
// when the new one is in place. On an error all is as it was; only where the folder
// cannot be synced is the new one in place, and may not survive.
//
// Every group becomes the file GROUP.safetensors. The tensors must not change
// until Write returns.
func Write(dir string, s State, groups map[string][]Named) (path string, err error) {
	path = filepath.Join(dir, Name(s.Step))
	if err := write(path, s, groups); err != nil {
		return "", fmt.Errorf("checkpoint %s: %w%s", path, err, advice(err))
	}
	return path, nil
}

// advice says what to do about a disk that is full.
func advice(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return ": make room and resume; the checkpoints before it are as they were"
	}
	return ""
}

func write(path string, s State, groups map[string][]Named) error {
	if err := s.validate(); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := atomicfile.MakeDir(dir); err != nil {
		return err
	}
	sweep(dir)
	tmp := hidden(tmpPrefix, path)
	if err := fill(tmp, s, groups); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return publish(tmp, path)
}

// hidden is a name beside path that nobody has, for what is not the checkpoint at path yet,
// or not any more.
func hidden(prefix, path string) string {
	return filepath.Join(filepath.Dir(path), prefix+filepath.Base(path)+"-"+rand.Text()[:8])
}

// sweep removes what a writer that was killed has left, as far as it can be removed: what
// stays takes room, and is in nobody's way.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the writing that follows says why
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tmpPrefix) || strings.HasPrefix(e.Name(), oldPrefix) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// fill makes the folder tmp with all files of the checkpoint, durable.
func fill(tmp string, s State, groups map[string][]Named) error {
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return err
	}
	m := manifest{Format: Format, State: s, Files: map[string]entry{}}
	for group, tensors := range groups {
		file := group + suffix
		if groupOf(file) == "" {
			return fmt.Errorf("group %q: a name is lower-case letters, digits, _ and -, beginning with a letter", group)
		}
		e, err := writeGroup(filepath.Join(tmp, file), s.Step, tensors)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		m.Files[file] = e
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	// The files' names become durable with state.json's, before the rename.
	return atomicfile.WriteBytes(filepath.Join(tmp, stateFile), text)
}

// publish gives the finished folder tmp its name, in place of one that is there.
func publish(tmp, path string) error {
	dir := filepath.Dir(path)
	old := hidden(oldPrefix, path)
	err := os.Rename(path, old)
	replaced := err == nil
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(old, path))
		}
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := atomicfile.SyncDir(dir); err != nil {
		return err
	}
	_ = os.RemoveAll(old) // what stays is hidden, and swept later
	return nil
}
