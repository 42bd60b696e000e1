package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"ebtrain/collective/processors"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/rundir"
)

// tools are the programs that make and measure cells.
type tools struct {
	train, evaluate, sample, mkshards, launch, self string
	// commit is that of all of them. Where it does not say what they are made of,
	// because files were changed or it is not known, a digest of the programs
	// follows it.
	commit string
}

// findTools finds the programs beside this one. Those that do an experiment's cells must
// be of one commit.
func (a app) findTools(e plan.Experiment) (tools, error) {
	in := func(name string) string { return filepath.Join(a.bin, name) }
	t := tools{train: in("train"), evaluate: in("evaluate"), sample: in("sample"), mkshards: in("mkshards"), launch: in("ddplaunch"), self: a.self}
	programs := []string{t.train, t.evaluate, t.sample}
	switch {
	case e.Compute != nil:
		programs = []string{t.self}
	case e.Ranks != nil:
		programs = []string{t.launch, t.train}
	}
	var first string
	for i, path := range programs {
		commit, err := commitOf(path)
		if err != nil {
			return t, err
		}
		if i == 0 {
			first = commit
		}
		if commit != first {
			return t, fmt.Errorf("%s is of commit %s and %s of %s: build all programs together with make build", programs[0], named(first), path, named(commit))
		}
	}
	var err error
	t.commit, err = identity(first, programs)
	return t, err
}

// sameBuild reports programs that are no longer those that the run began with: what they
// do from now on would be signed with a commit that is not theirs.
func (w *work) sameBuild() error {
	const rebuilt = "the programs were rebuilt during the run"
	now, err := w.app.findTools(w.e)
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		return fmt.Errorf("the programs cannot be read any more, so nobody would know who made the cell: %w", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", rebuilt, err)
	}
	if now.commit != w.tools.commit {
		return fmt.Errorf("%s: they were of commit %s and are of %s: build the first again and the same command goes on, or give --again to do its cells anew", rebuilt, w.tools.commit, now.commit)
	}
	return nil
}

// commitOf is what a program says that it was built of.
func commitOf(path string) (string, error) {
	info, err := buildinfo.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no program %s: train, evaluate, sample and ddplaunch must be in the folder of experiment, where make build puts them", path)
	}
	if err != nil {
		return "", err
	}
	return rundir.BuildOf(info).Commit, nil
}

// identity names a build by its commit, and by a digest of its programs where that is
// not enough.
func identity(commit string, programs []string) (string, error) {
	if commit != "" && !strings.HasSuffix(commit, "+modified") {
		return commit, nil
	}
	hash := sha256.New()
	for _, path := range programs {
		if err := digest(hash, path); err != nil {
			return "", err
		}
	}
	const short = 6
	return named(commit) + "-" + hex.EncodeToString(hash.Sum(nil)[:short]), nil
}

func named(commit string) string {
	if commit == "" {
		return "unknown"
	}
	return commit
}

func digest(into io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(into, f)
	return errors.Join(err, f.Close())
}

// machine describes this computer in a line, with the GPUs that programs take.
func machine(gpus []string) string {
	return strings.Join(append([]string{fmt.Sprintf("%s, %d cores", processors.Model(), runtime.NumCPU())}, gpus...), ", ")
}
