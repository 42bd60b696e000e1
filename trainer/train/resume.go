package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/settings"
	"ebtrain/trainer/trained"
)

// mayChange are the flags that a resumed run may be given anew: none of them
// defines what is computed. All others are those of config.json.
var mayChange = []string{
	"out", "resume", "steps", "data", "device", "cuda-graph", "threads", "prefetch", "on-bad-data", "remat", "shard-optimizer",
	"log-every", "print-every", "ckpt-every", "ckpt-keep", "sample-every", "samples", "check-every", "profile",
	verifyFlag,
}

// notInherited are the flags that a resumed run does not take from config.json:
// they speak of one start.
var notInherited = []string{"out", "resume", "profile", verifyFlag}

// savedRun is the run in out; nil if there is none, and then the flags must say
// what to begin.
func savedRun(out string) (*rundir.Config, error) {
	if _, err := os.Stat(rundir.Layout(out).ConfigFile()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c, err := rundir.ReadConfig(out)
	if err != nil {
		return nil, fmt.Errorf("cannot resume: %w", err)
	}
	return &c, nil
}

// goOn is args with --resume before them where this is a later epoch of a job: the
// launcher starts all ranks again with the command line of the first time. A host that
// has come since, or whose ranks died before they made the run directory, has none, and
// is sent the run and its checkpoint if there is one. A run that another job began is none
// of this one's, which is an error, of this host alone, as is one that cannot be read.
func goOn(w env.Worker, args []string) ([]string, error) {
	first := peek(args)
	if w.Restart == 0 || first.out == "" {
		return args, nil
	}
	c, err := savedRun(first.out)
	if first.resume {
		return args, err
	}
	if c != nil && !w.Follows(c.Group) {
		err = anothersRun(first.out)
	}
	return append([]string{"--resume"}, args...), err
}

// anothersRun is that out, where this host has what it keeps of the job's run, holds another.
func anothersRun(out string) error {
	return fmt.Errorf("%s holds another run than this job's: on this host, move it away and start the launcher again", out)
}

// begins says whether flags begin a run, and do not only go on with one.
func begins(fs *pflag.FlagSet) (yes bool) {
	fs.Visit(func(f *pflag.Flag) { yes = yes || f.Name == "data" || !slices.Contains(mayChange, f.Name) })
	return yes
}

// parseResumed reads the command line of a run that goes on: its flags are
// those of config.json, and those of args beside them, which may change only
// what mayChange lists.
func parseResumed(saved *rundir.Config, args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	o, fs, was, err := inherit(saved, peek(args).out, notInherited)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot resume: %w", err)
	}
	if err := program(o.own.All()).Parse(fs, args, out); err != nil {
		return nil, nil, err
	}
	if f := fs.Lookup("from-step"); o.fromStep == trained.Newest { // as when the run was begun, which has noted the step
		if err := f.Value.Set(f.DefValue); err != nil {
			return nil, nil, err
		}
	}
	if err := checkUnchanged(fs, o.out, saved.Folder); err != nil {
		return nil, nil, err
	}
	o.settings.Data, o.settings.BiDVL, o.was = was.Data, was.BiDVL, &was
	o.settings.From, o.settings.FromNetworks = was.From, was.FromNetworks
	o.inheritFrom(saved.Folder)
	o.inheritData(fs, saved, was)
	if err := o.complete(); err != nil {
		return nil, nil, lacking(saved, fs, o.out, err)
	}
	return o, fs, o.checkSteps()
}

// inherit are the flags of train that are, without being said, those of the run at path,
// which is saved, but for some; and the run's settings.
func inherit(saved *rundir.Config, path string, but []string) (*options, *pflag.FlagSet, settings.Settings, error) {
	was, err := settings.Parse(saved.Settings)
	if err != nil {
		return nil, nil, was, err
	}
	at := chosen.Start{Preset: algo.Preset{Net: was.Net}}
	if at.Method, err = settings.Method(was.Algo); err == nil {
		at.Preset.Config, err = was.Config()
	}
	if err != nil {
		return nil, nil, was, fmt.Errorf("the run in %s: %w", path, err)
	}
	o, fs := &options{}, pflag.NewFlagSet("train", pflag.ContinueOnError)
	o.define(fs, at)
	for name, value := range saved.Flags {
		f := fs.Lookup(name)
		if f == nil || slices.Contains(but, name) {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return nil, nil, was, fmt.Errorf("%s has --%s %q, want %s: put back what was there", rundir.Layout(path).ConfigFile(), name, value, cliflag.Wants(f))
		}
		f.DefValue = f.Value.String()
	}
	return o, fs, was, nil
}

// lacking is err, about flags of a run that goes on, and that its config.json is why, where
// that lacks them: nobody need have typed them. Flags of other versions may be missing
// there and do no harm.
func lacking(saved *rundir.Config, fs *pflag.FlagSet, out string, err error) error {
	var missing, unknown []string
	fs.VisitAll(func(f *pflag.Flag) {
		_, there := saved.Flags[f.Name]
		if !there && !f.Changed && slices.Contains(strings.Fields(err.Error()), "--"+f.Name) {
			missing = append(missing, "no --"+f.Name)
		}
	})
	if len(missing) == 0 {
		return err
	}
	for name := range saved.Flags {
		if fs.Lookup(name) == nil {
			unknown = append(unknown, "an unknown --"+name)
		}
	}
	slices.Sort(unknown)
	return fmt.Errorf("cannot resume: %s has %s among its flags: put back what was there", rundir.Layout(out).ConfigFile(), strings.Join(append(missing, unknown...), " and "))
}

// checkUnchanged reports the flags of a resumed run that are not those of the
// run, which was started last in folder, and may not be changed.
func checkUnchanged(fs *pflag.FlagSet, out, folder string) error {
	var was, now []string
	fs.Visit(func(f *pflag.Flag) {
		same := f.Value.String() == f.DefValue || f.Name == "from" && samePath(f.Value.String(), f.DefValue, folder)
		if !same && !slices.Contains(mayChange, f.Name) {
			was, now = append(was, said(f.Name, f.DefValue)), append(now, said(f.Name, f.Value.String()))
		}
	})
	if len(now) == 0 {
		return nil
	}
	return cliflag.Usage("the run in %s has %s, not %s: a resumed run computes the same thing, so leave that out, or give another --out",
		out, strings.Join(was, " "), strings.Join(now, " "))
}

// said is a flag as it is typed, or that it is not there.
func said(flag, value string) string {
	if value == "" {
		return "no --" + flag
	}
	return "--" + flag + " " + value
}

// checkSteps reports a run that has done more than --steps already.
func (o *options) checkSteps() error {
	done, err := ckpt.NewestStep(rundir.Layout(o.out).Ckpt())
	if errors.Is(err, ckpt.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	if done > o.steps {
		return cliflag.Usage("--steps %d, but the run in %s has done %d steps: --steps counts them too, so give more, or leave it out", o.steps, o.out, done)
	}
	return nil
}

// checkData reports data that are not those that the run began with.
func (o *options) checkData(digest string) error {
	if o.was == nil || o.was.DataDigest == digest {
		return nil
	}
	return fmt.Errorf("--data %s (split %s) does not hold the samples that the run in %s was trained on (their digest is %s, the run's %s): give the data it began with, wherever they are now",
		o.data, o.settings.Split, o.out, data.Brief(digest), data.Brief(o.was.DataDigest))
}

// inherited is what is known of data that a run was trained on: the folder in which it was
// started last, from which a relative --data of it is seen, and what they are.
type inherited struct{ folder, split, digest string }

// inheritData notes it, of the run saved, if --data is not said.
func (o *options) inheritData(fs *pflag.FlagSet, saved *rundir.Config, was settings.Settings) {
	if !fs.Changed("data") {
		o.inherits = inherited{saved.Folder, was.Split, was.DataDigest}
	}
}

// there is where the data are that name says, seen from the folder of the run, if they are
// there, and are not there seen from this one; else "".
func (i inherited) there(name string) string {
	if i.folder == "" || filepath.IsAbs(name) || dataset.BuiltIn(name) || i.holds(name) {
		return ""
	}
	if there := filepath.Join(i.folder, name); i.holds(there) {
		return there
	}
	return ""
}

// holds says whether a data set is the one that the run was trained on.
func (i inherited) holds(name string) bool {
	src, err := dataset.Open(name, i.split)
	return err == nil && src.Digest() == i.digest
}

// checkBegun reports a run that is about to begin again at step 0, and to write its
// metrics anew, though it has had checkpoints.
func checkBegun(dir *rundir.Dir) error {
	c := dir.Config()
	had := c.Saved
	for _, r := range c.Resumed { // of runs begun when only that was noted
		had = max(had, r.Step)
	}
	if had == 0 {
		return nil
	}
	return fmt.Errorf("the run in %s has had a checkpoint of step %d, and none is left in %s: put one back there, or begin again with another --out", dir.Path(), had, dir.Ckpt())
}
