package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize/english"

	"ebtrain/data/atomicfile"
	"ebtrain/ddp/exec"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/jump"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/run/tensorboard"
	"ebtrain/trainer/trained"
)

// recorder is rank 0's view of the run: the run directory and the terminal. It
// implements loop.Observer.
type recorder struct {
	o      *options
	info   runInfo
	world  int
	dir    *rundir.Dir
	device string
	stdout io.Writer
	tty    bool
	log    *slog.Logger // of warnings, on stderr and in the log file; discards them until there is one
	file   *slog.Logger // of the log file alone, for what the console is told beside the bar

	watch   *jump.Watch
	shown   map[string]bool // the losses in the line of progress
	takes   algo.Inputs     // of the model: what its samples are
	metrics *rundir.Metrics
	events  *tensorboard.Writer
	show    *progressbar.Reporter
	began   int64 // the step at which this start goes on
	step    lastStep
}

// lastStep is what is shown and kept of a step. Its maps are filled anew each
// time, so that an ordinary step allocates nothing.
type lastStep struct {
	losses, short map[string]float64 // all, and those that fit into a line
	epoch         int64
	caption       string            // of that epoch
	tags          map[string]string // of the event file, by the name of the loss
}

func newRecorder(o *options, info runInfo, world int, device string, stdout io.Writer) (*recorder, error) {
	model := o.model.Model()
	quiet := slog.New(slog.DiscardHandler)
	r := &recorder{o: o, info: info, world: world, device: device, stdout: stdout, log: quiet, file: quiet, shown: map[string]bool{}, takes: model.Takes()}
	r.watch = watched(model.Report())
	for _, c := range model.Report() {
		r.shown[c.Name] = c.Shown
	}
	if f, ok := stdout.(*os.File); ok {
		var err error
		if r.tty, err = progressbar.Terminal(f, info.hint); err != nil {
			return nil, err
		}
	}
	var err error
	r.dir, err = openDir(o, info, world)
	return r, err
}

// openDir makes the run directory, or opens the one to resume.
func openDir(o *options, info runInfo, world int) (*rundir.Dir, error) {
	_, err := os.Stat(rundir.Layout(o.out).ConfigFile())
	if !o.resume || errors.Is(err, os.ErrNotExist) {
		config := rundir.Config{Program: "train", Args: info.args, Flags: info.flags, World: world, Group: info.group}
		return rundir.Create(o.out, config, o.settings)
	}
	dir, err := rundir.Open(o.out)
	if err != nil {
		return nil, err
	}
	if err := dir.CheckSettings(o.settings); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// Started opens the files for the steps that follow.
func (r *recorder) Started(step int64) error { return advised(r.start(step)) }

func (r *recorder) start(step int64) (err error) {
	r.began = step
	if step == 0 && r.info.goesOn {
		if err := checkBegun(r.dir); err != nil {
			return err
		}
	}
	if r.metrics, err = r.dir.Metrics(step, r.remember); err != nil {
		return err
	}
	r.warnMissing(step)
	r.warnNames()
	if step > 0 || r.info.goesOn {
		resume := rundir.Resume{Step: step, World: r.world, Time: time.Now().UTC(), Args: r.info.args, Commit: rundir.ThisBuild().Commit}
		if err := r.dir.Resumed(resume, r.info.flags); err != nil {
			return err
		}
	}
	if r.events, err = tensorboard.Create(r.dir.Events(), step); err != nil {
		return err
	}
	c := progressbar.Config{Label: "step", Unit: trained.Speed(r.takes), Out: r.stdout, Terminal: r.tty, Start: step, Total: r.o.steps, Steps: r.o.printEvery}
	c.Width = r.info.width
	if f, ok := r.stdout.(*os.File); ok && c.Width == nil {
		c.Width = progressbar.Width(f)
	}
	r.show = progressbar.New(c)
	return r.sayBegin(step)
}

// sayBegin says what is about to run, in a line or a few.
func (r *recorder) sayBegin(step int64) error {
	if s := r.o.settings.Shards; s > 0 && s < maxShards {
		ranks := fmt.Sprintf("%d virtual shards, so the bits are those of 1 to %d ranks", s, s)
		if s == 1 {
			ranks = "no smaller parts, so the bits are those of 1 rank"
		}
		if _, err := fmt.Fprintf(r.show, "--deterministic: a batch of %d is cut into %s\n", r.o.settings.Batch, ranks); err != nil {
			return err
		}
	}
	if step == 0 && r.o.from != "" {
		for _, err := range r.o.fromSkipped {
			ckpt.WarnSkipped(r.log, err)
		}
		text, err := r.o.origin()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(r.show, text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(r.show, "%s on %s, %s, batch %d, %s, into %s\n", r.o.settings.Algo, r.device, r.info.pictures, r.o.settings.Batch, plan(step, r.o.steps), r.o.out)
	return err
}

// plan says which steps are to be done.
func plan(done, steps int64) string {
	switch {
	case done == 0:
		return english.Plural(int(steps), "step", "")
	case done == steps && steps == 1:
		return "the 1 step was done before (--steps of more goes on)"
	case done == steps:
		return fmt.Sprintf("all %d steps were done before (--steps of more goes on)", steps)
	}
	if done+1 == steps {
		return fmt.Sprintf("step %d", steps)
	}
	return fmt.Sprintf("steps %d to %d", done+1, steps)
}

// Stepped shows and keeps the numbers of a step.
func (r *recorder) Stepped(rec loop.Record) error {
	s := &r.step
	s.set(rec, r.shown)
	jumped, err := r.warn(rec.Step)
	if err != nil {
		return err
	}
	r.show.Step(progressbar.Update{Step: rec.Step, Images: int64(r.o.settings.Batch), Losses: s.short, Caption: s.caption})
	if rec.Step%r.o.logEvery != 0 && !jumped { // whose step is said to be in metrics.jsonl
		return nil
	}
	return advised(r.keep(rec, s))
}

// keep writes them down.
func (r *recorder) keep(rec loop.Record, s *lastStep) error {
	for _, name := range rec.Names {
		if v, ok := s.losses[name]; ok {
			if err := r.events.Scalar(s.tags[name], rec.Step, v); err != nil {
				return err
			}
		}
	}
	return r.metrics.Append(rundir.Record{
		Step: rec.Step, Epoch: rec.Epoch, Samples: rec.Samples, Losses: s.losses,
		SamplesPerS: float64(r.o.settings.Batch) / rec.StepTime.Seconds(),
		StepMS:      ms(rec.StepTime), DataMS: ms(rec.DataTime), CommMS: ms(rec.CommTime), MemBytes: peakMemory(),
		Time: float64(time.Now().UnixMilli()) / 1000,
	})
}

// advised is err with what to do where a disk is full, or where a folder is gone that
// was there when the run began.
func advised(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the folder of the run was removed or moved while it trained: leave it in place until the run has ended; put it back and resume, or start again with another --out", err)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: make room and resume; the checkpoints that there are stay as they were", err)
	}
	return err
}

// set takes over the numbers of a step; those of shown are short.
func (s *lastStep) set(rec loop.Record, shown map[string]bool) {
	if s.losses == nil {
		s.losses, s.short, s.tags = map[string]float64{}, map[string]float64{}, map[string]string{}
		for _, name := range rec.Names {
			s.tags[name] = "train/" + name
		}
	}
	if s.caption == "" || s.epoch != rec.Epoch {
		s.epoch, s.caption = rec.Epoch, fmt.Sprintf("epoch %d", rec.Epoch)
	}
	for i, name := range rec.Names {
		if name == algo.ReportStop {
			continue
		}
		if shown[name] {
			s.short[name] = rec.Values[i]
		}
		s.losses[name] = rec.Values[i]
	}
}

// Announce says what takes a while, such as another program that is compiled.
func (r *recorder) Announce(line string) error {
	_, err := fmt.Fprintln(r.show, line)
	return err
}

// Sampled writes a picture of samples: a grid of pictures, or a scatter plot of
// points of the plane; or a file of sentences, or of the numbers of other points.
func (r *recorder) Sampled(step int64, samples *exec.Tensor) error {
	return advised(r.draw(step, samples))
}

func (r *recorder) draw(step int64, samples *exec.Tensor) error {
	if trained.Sentences(r.takes) {
		_, err := trained.WriteText(r.grid(step), samples, r.takes)
		return err
	}
	if !trained.Drawable(r.takes) {
		return trained.WriteNumbers(r.grid(step), samples.F32(), trained.ColumnsOf(r.takes, r.o.settings.Columns))
	}
	grid, err := trained.Picture(samples, r.takes, 0)
	if err != nil {
		return err
	}
	file, err := picture.PNG(grid)
	if err != nil {
		return err
	}
	if step == r.began && r.drawn(step, file) {
		return nil
	}
	// Of its last step, as losses are: a run that goes on at step supersedes what is there.
	if err := r.events.Image("samples", step-1, file); err != nil {
		return err
	}
	return atomicfile.WriteBytes(r.grid(step), file)
}

// drawn says whether an earlier start has drawn that picture of step, and so has an event of it.
func (r *recorder) drawn(step int64, picture []byte) bool {
	was, err := atomicfile.Read(r.grid(step), int64(len(picture)))
	return err == nil && bytes.Equal(was, picture)
}

func (r *recorder) grid(step int64) string {
	kind := "csv"
	switch {
	case trained.Sentences(r.takes):
		kind = "txt"
	case trained.Drawable(r.takes):
		kind = "png"
	}
	return filepath.Join(r.dir.Samples(), fmt.Sprintf("step-%08d.%s", step, kind))
}

// Saving makes the metrics up to the checkpoint survive as long as it does. Where the folder
// is gone none is written: it would lie in a new one, without all that was before.
func (r *recorder) Saving(int64) error {
	if err := r.dir.InPlace(); err != nil {
		return advised(err)
	}
	return advised(r.metrics.Sync())
}

// Saved notes that there is a checkpoint: see checkBegun.
func (r *recorder) Saved(step int64) error { return advised(r.dir.Saved(step)) }

// Ended says where things are.
func (r *recorder) Ended(steps int64) error {
	text := fmt.Sprintf("%s done; checkpoint %s", english.Plural(int(steps), "step", ""), r.dir.Ckpt())
	if _, err := os.Stat(r.grid(steps)); err == nil {
		text += "; samples " + r.grid(steps)
	}
	r.show.Flush()
	_, err := fmt.Fprintln(r.show, text)
	return err
}

// Close closes what is open.
func (r *recorder) Close() error {
	var errs []error
	if r.show != nil {
		errs = append(errs, r.show.Close())
	}
	if r.metrics != nil {
		errs = append(errs, r.metrics.Close())
	}
	if r.events != nil {
		errs = append(errs, r.events.Close())
	}
	return errors.Join(append(errs, r.dir.Close())...)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// peakMemory is the largest resident size of this process so far, in bytes; 0
// if the system does not say.
func peakMemory() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024
}
