package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/ckpt"
	"ebtrain/trainer/loop"
	"ebtrain/trainer/rundir"
)

// recorder is rank 0's view of the run: the run directory and the terminal. It
// implements loop.Observer.
type recorder struct {
	o       *options
	dir     *rundir.Dir
	metrics *rundir.Metrics
	stdout  io.Writer
}

func newRecorder(o *options, info runInfo, world int, device string, stdout io.Writer) (*recorder, error) {
	dir, err := openDir(o, info, world)
	if err != nil {
		return nil, err
	}
	return &recorder{o: o, dir: dir, stdout: stdout}, nil
}

// openDir makes the run directory, or opens the one to resume.
func openDir(o *options, info runInfo, world int) (*rundir.Dir, error) {
	if o.resume {
		if _, err := os.Stat(rundir.Layout(o.out).ConfigFile()); err == nil {
			dir, err := rundir.Open(o.out)
			if err != nil {
				return nil, err
			}
			if err := dir.CheckSettings(o.settings); err != nil {
				return nil, errors.Join(err, dir.Close())
			}
			return dir, nil
		}
	}
	return rundir.Create(o.out, rundir.Config{Program: "train", Args: info.args, Flags: info.flags, World: world}, o.settings)
}

func (r *recorder) Started(step int64) (err error) {
	r.metrics, err = r.dir.Metrics(step)
	return err
}

func (r *recorder) Stepped(rec loop.Record) error {
	if rec.Step%r.o.logEvery != 0 {
		return nil
	}
	line := rundir.Record{
		Step: rec.Step, Epoch: rec.Epoch, Samples: rec.Samples, Losses: map[string]float64{},
		SamplesPerS: float64(r.o.settings.Batch) / rec.StepTime.Seconds(),
		StepMS:      ms(rec.StepTime), DataMS: ms(rec.DataTime), CommMS: ms(rec.CommTime), MemBytes: peakMemory(),
	}
	for i, name := range rec.Names {
		if name != loop.ReportStop {
			line.Losses[name] = rec.Values[i]
		}
	}
	fmt.Fprintln(r.stdout, rec.Step, rec.Values, rec.StepTime)
	return r.metrics.Append(line)
}

func (r *recorder) Sampled(step int64, images *exec.Tensor) error { return nil }

func (r *recorder) Saved(step int64, path string) error {
	if r.metrics == nil {
		return nil
	}
	return r.metrics.Sync()
}

func (r *recorder) Close() error {
	var err error
	if r.metrics != nil {
		err = r.metrics.Close()
	}
	return errors.Join(err, r.dir.Close())
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// peakMemory is the largest resident size of this process so far, in bytes.
func peakMemory() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024
}

var _ = ckpt.Name
