package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/variable"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/trained"
	"ebtrain/trainer/world"
)

// run is the program, without the process around it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	worker, envErr := env.Parse(environ) // Join says what is wrong with it, after --help
	line, err := goOn(worker, args)
	if err != nil {
		return failHere(ctx, environ, err)
	}
	s, err := newStart(worker, args, line, stdout)
	if err != nil {
		return err
	}
	if envErr != nil {
		return envErr
	}
	w, err := world.Join(ctx, environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if w.Size() > 1 {
		if err := s.agree(ctx, w.Rank(), w.Exchange, w.Fail, w.FailHere); err != nil {
			return err
		}
	}
	o, src := s.o, s.src
	if err := w.Share(ctx, o.parts()); err != nil {
		return err
	}
	if err := checkShare(o, w.Size()); err != nil { // every rank says so; none has begun anything
		return err
	}
	if o.verify {
		if err := checkPlayed(o, w.Size()); err != nil {
			return err
		}
		if err := checkMemory(o, nil, w.Size()); err != nil {
			return err // all ranks of equal machines find the same
		}
		ctx, cancel := w.Context(ctx)
		defer cancel()
		ctx, done := w.Unstopped(ctx, "nothing was verified")
		defer done()
		if err := verify(ctx, o, src, w, stdout); err != nil {
			return w.Fail(err)
		}
		return nil
	}
	w.Announce("train", stderr)
	ctx, cancel := w.Context(ctx)
	defer cancel()
	info := runInfo{args: args, group: worker.Group, flags: cliflag.Values(s.fs), pictures: pictures(o, src), hint: variable.Get(environ, "EBTRAIN_PROGRESS"), goesOn: o.was != nil}
	info.flags["from"] = o.fromPath() // seen from this folder, as relative paths are the next time
	if info.hint != "" {
		info.width = w.Columns
	}
	err = train(ctx, o, info, src, w, stdout, stderr)
	if err == nil || errors.Is(err, cliflag.ErrStopped) {
		return err
	}
	return w.Fail(err)
}

// runInfo is what config.json keeps of the command line.
type runInfo struct {
	args     []string
	group    string // of the launcher, see env.Worker
	flags    map[string]string
	pictures string     // what is trained on, in words
	hint     string     // of the launcher, whether its output is a terminal
	width    func() int // of the launcher's terminal; nil without one
	goesOn   bool       // a run that was begun before, if only from its step 0
}

// openData opens the data set, fits the networks to its pictures, and so
// completes the settings.
func openData(o *options) (data.Source, error) {
	if there := o.inherits.there(o.data); there != "" {
		o.data = there
	}
	src, err := chosen.Open(o.data, o.settings.Split)
	if err != nil && o.was != nil {
		return nil, fmt.Errorf("%w; if the data of the run in %s have moved, say where they are with --data", err, o.out)
	}
	if err != nil {
		return nil, err
	}
	if err := o.checkData(src.Digest()); err != nil {
		return nil, err
	}
	if err := o.fit(src.Schema()); err != nil {
		return nil, err
	}
	if err := o.checkShuffle(src); err != nil {
		return nil, err
	}
	o.settings.DataDigest, o.settings.Columns = src.Digest(), src.Schema().Columns
	return src, nil
}

// fit fits the model to the data, and completes the settings.
func (o *options) fit(s data.Schema) error {
	if err := chosen.Fit(o.model, o.settings.Algo, o.data, s); err != nil {
		return err
	}
	if o.was == nil { // a run that goes on has it as it was
		if err := chosen.CheckFlip(o.settings.Flip, o.data, s); err != nil {
			return err
		}
	}
	if err := o.model.Validate(); err != nil {
		return &cliflag.UsageError{Err: err}
	}
	if err := o.checkVerify(); err != nil {
		return err
	}
	return o.settings.SetConfig(o.model)
}

// checkShuffle reports a --shuffle-memory in which samples of the data cannot be mixed.
func (o *options) checkShuffle(src data.Source) error {
	const mib = 1 << 20
	least := loader.LeastShuffleMemory(src)
	if o.settings.ShuffleMemory == 0 || int64(o.settings.ShuffleMemory)*mib >= least {
		return nil
	}
	return cliflag.Usage("want --shuffle-memory of at least %d MiB, which hold two blocks of --data %s, got %d (0 mixes pools of at least 16384 samples)",
		(least+mib-1)/mib, o.data, o.settings.ShuffleMemory)
}

// pictures says what is trained on: what is built in is never taken for data.
func pictures(o *options, src data.Source) string {
	what := trained.Noun(trained.Of(src.Schema()))
	if dataset.BuiltIn(o.data) {
		return fmt.Sprintf("%s (--data %s)", trained.Count(src.Len(), "built-in "+what), o.data)
	}
	text := fmt.Sprintf("%s of %s/%s", trained.Count(src.Len(), what), filepath.Clean(o.data), o.settings.Split)
	if t := src.Schema().Text; t != nil {
		text += fmt.Sprintf(" (a vocabulary of %d, batches of %v tokens)", len(t.Words), t.Edges)
	}
	return text
}

// parts is how many equal parts the ranks can share at most, so that each number
// of ranks which divides it will do, as far as any does: see checkShare.
func (o *options) parts() int {
	if o.settings.Shards > 0 { // which divide the batch, and keep together what is seen together
		return o.settings.Shards
	}
	return max(1, o.settings.Batch/algo.GroupOf(o.model))
}

// checkShare reports a batch that the ranks cannot share.
func checkShare(o *options, ranks int) error {
	batch, shards, group := o.settings.Batch, o.settings.Shards, algo.GroupOf(o.model)
	switch {
	case batch%ranks != 0:
		return cliflag.Usage("--batch %d is over all ranks and cannot be shared equally by %d: want a multiple of %d", batch, ranks, ranks)
	case batch/ranks%group != 0:
		return cliflag.Usage("--batch %d gives each of %d ranks %d samples, and --algo %s takes samples in groups of %d: want a multiple of %d", batch, ranks, batch/ranks, o.settings.Algo, group, ranks*group)
	case shards > 0 && shards%ranks != 0:
		return cliflag.Usage("--deterministic cuts --batch %d into %d virtual shards, which %d ranks cannot share: want a number of ranks that divides %d", batch, shards, ranks, shards)
	}
	return nil
}

// spareSamples leaves sample grids to the end of the run where each is a chain of
// many transitions, unless --sample-every was said. A run that goes on has it as it was.
func (o *options) spareSamples(fs *pflag.FlagSet) error {
	const few = 10
	sampler, ok := o.model.Model().(algo.Sampler)
	if !ok || o.was != nil || o.samples == 0 || o.sampleEvery != defaultSampleEvery || fs.Changed("sample-every") {
		return nil
	}
	plan, err := sampler.Sample(nn.BatchStats, o.samples)
	if err == nil && plan.Transitions() > few {
		o.sampleEvery = 0
	}
	return err
}

// train runs the loop on this rank.
func train(ctx context.Context, o *options, info runInfo, src data.Source, w *world.World, stdout, stderr io.Writer) (err error) {
	keep := func(c io.Closer) { err = errors.Join(err, c.Close()) }
	here := func(err error) error { w.FailingHere(err); return err }
	said := &sayings{}
	backend, err := device.Open(device.Config{
		Device: o.how.Device, Precision: o.how.Precision, Threads: o.how.Threads, Sharing: w.Sharing(), LocalRank: w.LocalRank(), LocalRanks: w.LocalSize(),
		Graph: o.how.Graph, Deterministic: o.fixedBits, Choices: rundir.Layout(o.out).Choices(), Smaller: smaller(o), Say: said.say,
	})
	if err != nil {
		return here(err)
	}
	defer func() { keep(backend) }()
	defer func() {
		if err != nil && !errors.Is(err, cliflag.ErrStopped) {
			w.Failing(err) // before the backend, whose NCCL waits for that of the other ranks
		}
	}()
	if err := checkMemory(o, backend, w.Size()); err != nil { // before anything is written
		return here(err)
	}

	parts := loop.Parts{Model: o.model.Model(), Backend: backend, Stop: w.StopRequested(), Progress: w.Tell}
	var rec *recorder // of rank 0
	if w.Rank() == 0 {
		rec, err = newRecorder(o, info, w.Size(), exec.Describe(backend), stdout)
		if err != nil {
			return err
		}
		defer func() { keep(rec) }()
		defer func() { err = noteFailed(rec.dir, err) }()
		parts.Observer = rec
		if err := w.Records(o.out); err != nil {
			return err
		}
	}
	kept, err := makeDirs(ctx, o, info, w)
	if err != nil {
		return here(err)
	}
	if kept != nil {
		defer func() { keep(kept) }()
		defer func() { err = noteFailed(kept.dir, err) }()
		parts.Observer = kept
	}
	logFile, log, file, err := openLog(o.out, w.Rank(), stderr)
	if err != nil {
		return here(err)
	}
	defer func() { keep(logFile) }()
	file.Info("backend", "is", exec.Describe(backend))
	said.to(file)
	if rec != nil {
		rec.log, rec.file = log, file
	}
	connect := w.Connect
	if o.settings.Shards > 0 {
		connect = w.ConnectAligned
	}
	if err := connect(ctx, file); err != nil {
		file.Warn("not connected", "err", err) // the job may end for another reason
		return err
	}
	parts.Comm, parts.Log = w.Comm, log

	parts.Loader, err = loader.New(src, o.loaderConfig(w.Rank(), w.Size(), log))
	if err != nil {
		return loop.AdviseOnDamage(err, o.onBadData == badSkip)
	}
	defer func() { keep(parts.Loader) }()
	err = runLoop(ctx, o, parts, w.LocalSize())
	if rec != nil && errors.Is(err, loop.ErrDiverged) {
		err = errors.Join(err, rec.dir.Diverged(err.Error()))
	}
	return err
}

// loaderConfig is how a rank gets its samples.
func (o *options) loaderConfig(rank, world int, log *slog.Logger) loader.Config {
	c := loader.Config{Seed: o.settings.Seed, Batch: o.settings.Batch, Rank: rank, World: world, Tail: loader.Carry,
		Range: o.model.Model().Takes().Range, Shuffle: true, ShuffleMemory: int64(o.settings.ShuffleMemory) << 20, Flip: o.settings.Flip, Prefetch: o.prefetch}
	if o.onBadData == badSkip {
		c.Quarantine = func(e *data.CorruptError) {
			log.Warn("damaged data are left out, other samples take their place", "damage", e.Error())
		}
	}
	return c
}

// loopConfig is the plan of the run; maxBytes are for its step on this rank.
func (o *options) loopConfig(digest string, maxBytes int64) loop.Config {
	l := rundir.Layout(o.out)
	c := loop.Config{
		Batch: o.settings.Batch, Steps: o.steps, Seed: o.settings.Seed, Digest: digest, Shards: o.settings.Shards, Average: o.settings.Average,
		From: fromCheckpoint(o.fromPath(), o.fromStep), FromDigest: o.settings.From, FromNetworks: o.settings.FromNetworks,
		CkptDir: l.Ckpt(), CkptEvery: o.ckptEvery, CkptKeep: o.ckptKeep, Resume: o.resume,
		SampleEvery: o.sampleEvery, SampleCount: o.samples, CheckEvery: o.checkEvery, Remat: o.how.Remat, ShardOptimizer: o.how.ShardMoments,
		MaxBytes: maxBytes,
	}
	if o.profile >= 0 {
		c.Profile = loop.Profile{File: l.Profile(o.profile), Step: o.profile}
	}
	return c
}

// runLoop trains; ranksHere share this machine's memory.
func runLoop(ctx context.Context, o *options, parts loop.Parts, ranksHere int) (err error) {
	digest, err := rundir.Digest(o.settings)
	if err != nil {
		return err
	}
	memory, err := device.Memory(parts.Backend)
	if err != nil {
		return err
	}
	done := heard(parts.Stop, parts.Log)
	t, err := loop.New(ctx, o.loopConfig(digest, memory.Share(ranksHere)), parts)
	done()
	if err != nil {
		return doesNotFit(err, o, memory, ranksHere)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	outcome, err := t.Run(ctx)
	err = doesNotFit(err, o, memory, ranksHere) // a step of other sentences
	if err == nil && outcome == loop.Stopped {
		return cliflag.ErrStopped
	}
	return err
}

// heard says, if the job is asked to stop until done is called, what it goes on with:
// nothing stops a compilation, and a deep step's takes half a minute.
func heard(stop <-chan struct{}, log *slog.Logger) (done func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-stop:
			log.Warn("asked to stop, which it does once its step is compiled; asked again, it ends at once")
		case <-over:
		}
	})
	return func() { close(over); wg.Wait() }
}

// openLog opens this rank's log: everything goes to rank-N.log (file), of all
// but the collectives' own also the warnings to stderr (log). What goes wrong
// in a collective is an error besides, and its flight record is long.
func openLog(out string, rank int, stderr io.Writer) (closer io.Closer, log, file *slog.Logger, err error) {
	f, err := os.OpenFile(rundir.Layout(out).Log(rank), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--out: %w", err)
	}
	all := slog.NewJSONHandler(f, nil).WithAttrs([]slog.Attr{slog.Int("rank", rank)})
	return f, slog.New(slog.NewMultiHandler(all, plainlog.New("train", stderr))), slog.New(all), nil
}
