package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"ebtrain/collective"
	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/ddp/exec"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/trained"
	"ebtrain/trainer/world"
)

// evaluation is one run of evaluate.
type evaluation struct {
	o       options
	backend exec.Backend
	threads int           // of this rank
	ranks   int           // on this machine
	trained *trained.Run  // nil: samples are judged that no model of ours made
	takes   algo.Inputs   // of the model
	columns []data.Column // of --data, where there is no model; nil of what is no table
	show    *progressbar.Phases
	reckon  reckoning       // of what is shown
	picture string          // file of the picture that is made; "" for none
	undrawn error           // why that picture is not there, although it should be
	z       *logZ           // the normaliser, once it was asked for
	comm    collective.Comm // of the ranks; nil in a world of one
	log     *slog.Logger
	compare []string     // measures that compare samples with data, as asked for
	told    *feature.Net // the classifier; nil: none is given
	fluency []string     // measures of samples that are sentences, as asked for
	judge   *trained.Run // the language model of --judge; nil: none is given

	published *feature.Net // that of published numbers; nil: none is given

	// same compares things with the other ranks; nil: there are none.
	same func(things map[string]string, dataDigest string) error
}

// run is the program, without the process around it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	worker, err := env.Parse(environ)
	if err != nil {
		return err
	}
	if worker.Alone() {
		defer cliflag.EndAtSignal("evaluate", o.unfinished(), stderr)()
		return evaluate(ctx, o, nil, stdout, stderr)
	}
	return rank(ctx, o, environ, stdout, stderr)
}

// rank is one of several: all do the same, but for features and samples, which they
// share, and the first speaks.
func rank(ctx context.Context, o options, environ []string, stdout, stderr io.Writer) (err error) {
	w, err := world.Join(ctx, environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := world.Same(ctx, w.Rank(), o.given, ofEachHost, "", w.Exchange); err != nil {
		return err
	}
	w.Announce("evaluate", stderr)
	ctx, cancel := w.Context(ctx)
	defer cancel()
	ctx, done := w.Unstopped(ctx, o.unfinished())
	defer done()
	if err := w.Connect(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return w.Fail(err)
	}
	if w.Rank() > 0 {
		stdout, stderr = io.Discard, io.Discard
	}
	if err := evaluate(ctx, o, w, stdout, stderr); err != nil {
		return w.Fail(err)
	}
	return nil
}

// unfinished is what there is of an evaluation when a signal ends it.
func (o options) unfinished() string {
	switch {
	case !o.several():
		return "nothing was measured"
	case o.json:
		return "what is printed was measured"
	}
	return "there is no table (--json prints of each checkpoint what was measured at once)"
}

// evaluate does the work, with other ranks if w is not nil.
func evaluate(ctx context.Context, o options, w *world.World, stdout, stderr io.Writer) error {
	if o.several() {
		return evaluateEach(ctx, o, w, stdout, stderr)
	}
	o.of.Step = o.steps[0]
	return withDevice(ctx, o, w, stderr, func(e *evaluation) error { return e.do(ctx, stdout) })
}

// withDevice calls f with an evaluation, on a device that is open meanwhile.
func withDevice(ctx context.Context, o options, w *world.World, stderr io.Writer, f func(e *evaluation) error) (err error) {
	c := device.Config{Device: o.device, Precision: device.F32, Threads: o.threads, Smaller: "choose a smaller --batch"}
	e := &evaluation{o: o, show: progressbar.NewPhases(stderr), log: slog.New(plainlog.New("evaluate", stderr))}
	if w != nil {
		c.LocalRank, c.LocalRanks, c.Sharing, e.comm = w.LocalRank(), w.LocalSize(), w.Sharing(), w.Comm
		e.ranks = w.LocalSize()
		e.same = func(things map[string]string, dataDigest string) error {
			return world.Same(ctx, w.Rank(), things, nil, dataDigest, w.Exchange)
		}
	}
	if e.backend, err = device.Open(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.backend.Close()) }()
	if e.threads, err = device.Threads(c); err != nil {
		return err
	}
	return f(e)
}

// do does what the flags say, of one checkpoint or none.
func (e *evaluation) do(ctx context.Context, stdout io.Writer) error {
	if e.o.trainClassifier != "" {
		if err := e.load(); err != nil {
			return err
		}
		if err := e.agree(); err != nil {
			return err
		}
		return e.trainClassifier(ctx, stdout)
	}
	r, err := e.one(ctx)
	switch {
	case r == nil:
		return errors.Join(err, e.tellDiverged(err, stdout))
	case e.o.json:
		return errors.Join(r.writeJSON(stdout), err)
	}
	return errors.Join(r.writeTable(stdout), err)
}

// one measures one checkpoint, or samples of no model. There may be a report and an error,
// that of a picture.
func (e *evaluation) one(ctx context.Context) (*report, error) {
	if err := e.load(); err != nil {
		return nil, err
	}
	r, err := e.measure(ctx)
	e.show.End()
	if err != nil {
		return nil, err
	}
	return r, e.undrawn
}

// load reads the model, if there is one, and says what its samples are.
func (e *evaluation) load() error {
	if err := e.loadModel(); err != nil {
		return err
	}
	return e.o.checkFrechet(e.leastFrechet())
}

func (e *evaluation) loadModel() error {
	if e.o.run == "" {
		src, err := dataset.Open(e.o.data, e.trainSplit())
		if err != nil {
			return err
		}
		e.takes, e.columns = trained.Of(src.Schema()), src.Schema().Columns
		e.chooseByKind()
		return nil
	}
	run, err := trained.Load(e.o.run, e.o.of, e.backend, e.log)
	if err != nil {
		return err
	}
	e.trained, e.takes, run.Ranks = run, run.Model.Takes(), e.ranks
	if e.o.data != "" {
		return nil
	}
	e.o.data, err = run.Data()
	return err
}

// chooseByKind chooses the measures of --samples-from, where none are named, by what the data
// beside it hold.
func (e *evaluation) chooseByKind() {
	switch {
	case !e.o.byKind:
	case trained.Sentences(e.takes):
		e.o.measures = ofTheirSentences
	default:
		e.o.measures = ofTheirPictures
	}
}

// agree compares what is measured, and by what, with the other ranks': the digests of all
// that lies where flags of each host say.
func (e *evaluation) agree() error {
	if e.same == nil {
		return nil
	}
	src, err := e.open(e.o.data, e.o.split)
	if err != nil {
		return err
	}
	things := map[string]string{}
	if split := e.trainSplit(); split != e.o.split {
		things[fmt.Sprintf("data (%s)", split)] = e.digest(e.o.data, split, nil)
	}
	if e.trained != nil {
		things["run"] = versionOf(e.trained)
	}
	if e.judge != nil {
		things["judge"] = versionOf(e.judge)
	}
	for name, net := range map[string]*feature.Net{"classifier": e.told, "inception": e.published} {
		if net != nil {
			things[name] = ofDigest("sha256:" + net.Digest)
		}
	}
	if e.o.samplesFrom != "" {
		split, err := splitOf(e.o.samplesFrom)
		things["samples-from"] = e.digest(e.o.samplesFrom, split, err)
	}
	for _, f := range e.o.ood {
		split, err := foreignSplit(f)
		things["ood "+f.name] = e.digest(f.data, split, err)
	}
	return e.same(things, src.Digest())
}

// versionOf says which run it is, and where.
func versionOf(r *trained.Run) string {
	return fmt.Sprintf("at step %d, of settings %.15s", r.State.Step, r.State.ConfigDigest)
}

func ofDigest(digest string) string { return "of digest " + data.Brief(digest) }

// digest says which samples a split holds, or that it cannot be read, if err was not nil
// before: what wants it says why.
func (e *evaluation) digest(name, split string, err error) string {
	if err != nil {
		return "not to be read"
	}
	src, err := e.open(name, split)
	if err != nil {
		return "not to be read"
	}
	return ofDigest(src.Digest())
}

// trainSplit is the split that was trained on.
func (e *evaluation) trainSplit() string {
	if e.trained == nil {
		return "train"
	}
	return e.trained.Settings.Split
}

// measure measures what was asked for.
func (e *evaluation) measure(ctx context.Context) (*report, error) {
	n, err := e.count(e.o.data, e.o.split)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(e.openClassifier(), e.openInception(), e.openJudge()); err != nil {
		return nil, err
	}
	if err := e.agree(); err != nil {
		return nil, err
	}
	all, lacking, err := e.chosen()
	if err != nil {
		return nil, err
	}
	e.warnUnused(all)
	if err := e.prepare(all); err != nil {
		return nil, err
	}
	r := &report{
		Run: e.o.run, Data: e.o.data, Split: e.o.split, Images: int(n), SamplesFrom: e.o.samplesFrom,
		Lacking: lacking, noun: trained.Noun(e.takes),
	}
	if e.trained != nil {
		r.Step, r.EMA = e.trained.State.Step, e.trained.Averages
	}
	for _, m := range all {
		if err := m.take(e, ctx, r); err != nil {
			return nil, err
		}
	}
	if len(e.compare) > 0 {
		if err := e.compareSets(ctx, r); err != nil {
			return nil, err
		}
	}
	if len(e.fluency) > 0 {
		if err := e.compareSentences(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// prepare opens every split that will be read, and decides where the picture goes,
// so that what cannot be read or written is reported before the work is done.
func (e *evaluation) prepare(all []measure) error {
	if err := e.checkGiven(); err != nil {
		return err
	}
	for _, m := range all {
		if m.trains {
			if _, err := e.open(e.o.data, e.trainSplit()); err != nil {
				return err
			}
		}
		if m.picture != nil {
			if err := e.place(m.picture(e)); err != nil {
				return err
			}
		}
	}
	for _, f := range e.o.ood {
		split, err := foreignSplit(f)
		if err != nil {
			return err
		}
		if _, err := e.open(f.data, split); err != nil {
			return err
		}
	}
	return nil
}
