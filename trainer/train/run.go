package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/job"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
)

// run is the program, without the process around it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	o, fs, err := parse(args, stdout)
	if err != nil {
		return err
	}
	src, err := openData(o)
	if err != nil {
		return err
	}
	w, err := job.JoinWorld(ctx, environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if n := w.Size(); o.settings.Batch%n != 0 { // every rank says so; none has begun anything
		return job.Usage("--batch %d is over all ranks and cannot be shared equally by %d: want a multiple of %d", o.settings.Batch, n, n)
	}
	if err := checkMemory(o, w.Size()); err != nil {
		return err // all ranks of equal machines find the same
	}
	ctx, cancel := w.Context(ctx)
	defer cancel()
	err = train(ctx, o, runInfo{args: args, flags: flagValues(fs), hint: lookup(environ, "EBTRAIN_PROGRESS")}, src, w, stdout, stderr)
	if err == nil || errors.Is(err, job.ErrStopped) {
		return err
	}
	return w.Fail(err)
}

// runInfo is what config.json keeps of the command line.
type runInfo struct {
	args  []string
	flags map[string]string
	hint  string // of the launcher, whether its output is a terminal
}

// openData opens the data set, fits the networks to its pictures, and so
// completes the settings.
func openData(o *options) (data.Source, error) {
	src, err := dataset.Open(o.settings.Data, o.settings.Split)
	if err != nil {
		return nil, err
	}
	s := src.Schema()
	if s.H != s.W || s.H != o.model.Net.Size {
		return nil, misfit(o.settings.Data, o.settings.Net, o.model.Net.Size, s)
	}
	o.model.Net.Channels = s.C
	o.model = o.model.Resolved()
	o.settings.DataDigest = src.Digest()
	return src, nil
}

// checkMemory reports sizes that this machine cannot hold.
func checkMemory(o *options, world int) error {
	alg, err := o.settings.Algorithm()
	if err != nil {
		return err
	}
	step, _, err := alg.Step(world, o.settings.Batch/world)
	if err != nil {
		return err
	}
	if err := job.CheckMemory(step, "--batch or --width"); err != nil || o.samples == 0 {
		return err
	}
	sample, err := alg.Sample(nn.BatchStats, o.samples)
	if err != nil {
		return err
	}
	return job.CheckMemory(sample, "--samples")
}

// train runs the loop on this rank.
func train(ctx context.Context, o *options, info runInfo, src data.Source, w *job.World, stdout, stderr io.Writer) (err error) {
	keep := func(c io.Closer) { err = errors.Join(err, c.Close()) }
	backend, err := job.OpenBackend(o.device, o.precision, o.threads, w.LocalSize())
	if err != nil {
		return err
	}
	defer func() { keep(backend) }()

	parts := loop.Parts{Backend: backend, Stop: w.StopRequested(), Progress: w.Tell}
	if parts.Algorithm, err = o.settings.Algorithm(); err != nil {
		return err
	}
	if w.Rank() == 0 {
		rec, err := newRecorder(o, info, w.Size(), exec.Describe(backend), stdout)
		if err != nil {
			return err
		}
		defer func() { keep(rec) }()
		parts.Observer = rec
	}
	if err := w.Barrier(ctx, "run directory"); err != nil { // rank 0 has it now
		return err
	}
	logFile, log, file, err := openLog(o.out, w.Rank(), stderr)
	if err != nil {
		return err
	}
	defer func() { keep(logFile) }()
	file.Info(exec.Describe(backend))
	if err := w.Connect(ctx, file); err != nil {
		return err
	}
	parts.Comm, parts.Log = w.Comm, log

	parts.Loader, err = loader.New(src, loader.Config{Seed: o.settings.Seed, Batch: o.settings.Batch, Rank: w.Rank(), World: w.Size(),
		Tail: loader.Carry, Shuffle: true, Flip: o.settings.Flip, Prefetch: o.prefetch})
	if err != nil {
		return err
	}
	defer func() { keep(parts.Loader) }()
	return runLoop(ctx, o, parts)
}

func runLoop(ctx context.Context, o *options, parts loop.Parts) (err error) {
	digest, err := rundir.Digest(o.settings)
	if err != nil {
		return err
	}
	var profile loop.Profile
	if o.profile >= 0 {
		profile = loop.Profile{File: rundir.Layout(o.out).Profile(o.profile), Step: o.profile}
	}
	t, err := loop.New(ctx, loop.Config{
		Batch: o.settings.Batch, Steps: o.steps, Seed: o.settings.Seed, Digest: digest, Shards: o.settings.Shards,
		CkptDir: rundir.Layout(o.out).Ckpt(), CkptEvery: o.ckptEvery, CkptKeep: o.ckptKeep, Resume: o.resume,
		SampleEvery: o.sampleEvery, SampleCount: o.samples, CheckEvery: o.checkEvery, Profile: profile, Remat: o.remat,
	}, parts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	outcome, err := t.Run(ctx)
	if err == nil && outcome == loop.Stopped {
		return job.ErrStopped
	}
	return err
}

// flagValues is every flag with its value.
func flagValues(fs *pflag.FlagSet) map[string]string {
	m := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { m[f.Name] = f.Value.String() })
	return m
}

// lookup is the value of a variable of environ, "" if it has none.
func lookup(environ []string, name string) string {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// openLog opens this rank's log: everything goes to rank-N.log (file), of all
// but the collectives' own also the warnings to stderr (log). What goes wrong
// in a collective is an error besides, and its flight record is long.
func openLog(out string, rank int, stderr io.Writer) (closer io.Closer, log, file *slog.Logger, err error) {
	f, err := os.OpenFile(rundir.Layout(out).Log(rank), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if errors.Is(err, os.ErrNotExist) && rank > 0 {
		return nil, nil, nil, fmt.Errorf("--out %s: rank 0 has made it but rank %d does not see it: the hosts must share the file system it is in, at the same path", out, rank)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--out: %w", err)
	}
	all := slog.NewJSONHandler(f, nil).WithAttrs([]slog.Attr{slog.Int("rank", rank)})
	return f, slog.New(slog.NewMultiHandler(all, job.Warnings("train", stderr))), slog.New(all), nil
}
