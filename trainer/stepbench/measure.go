package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/stepbench/distance"
)

// sampleTime is how long a sample takes at least. The load of the machine is
// known in hundredths of a second, so a short step alone could not be judged.
const sampleTime = 200 * time.Millisecond

// sample is a few steps timed together.
type sample struct {
	step  float64 // seconds of a step
	other float64 // share of the machine that other programs took
}

// samples are all that were taken, and the rule by which they count.
type samples struct {
	all   []sample
	limit float64 // of other, for a quiet one
	want  int     // quiet ones
}

func (s *samples) quiet() (n int) {
	for _, x := range s.all {
		if x.other < s.limit {
			n++
		}
	}
	return n
}

// standing says how far it is from enough samples.
func (s *samples) standing(since time.Duration, most float64) string {
	return fmt.Sprintf("%d quiet of %d wanted, %.0f of at most %g s", s.quiet(), s.want, since.Seconds(), most)
}

// used are the quiet samples or, where there are fewer than 3 (or than wanted,
// if that is less), the quietest quarter and at least 3. It is the rule of the
// PyTorch peers.
func (s *samples) used() []sample {
	byNoise := slices.Clone(s.all)
	slices.SortStableFunc(byNoise, func(a, b sample) int {
		switch {
		case a.other < b.other:
			return -1
		case a.other > b.other:
			return 1
		}
		return 0
	})
	n := s.quiet()
	if n < min(3, s.want) {
		n = min(len(byNoise), max(3, len(byNoise)/4))
	}
	return byNoise[:n]
}

// all is the whole benchmark, the result of which only rank 0 uses.
func (b *bench) all(ctx context.Context) (*result, error) {
	inner, err := b.warmUp(ctx)
	if err != nil {
		return nil, err
	}
	first, err := b.distances(ctx)
	if err != nil {
		return nil, err
	}
	before, cpu := b.step.Stats(), cpuTime()
	s, err := b.repeat(ctx, inner)
	if err != nil {
		return nil, err
	}
	after, cpu := b.step.Stats(), cpuTime()-cpu
	rss := maxRSS() // before the peak's matrices
	if err := b.checkReplicas(ctx); err != nil {
		return nil, err
	}
	later, err := b.distances(ctx)
	if err != nil {
		return nil, err
	}
	peak := 0.0
	if b.o.peakSize > 0 {
		if peak, err = b.peak(ctx, b.o.peakSize); err != nil {
			return nil, err
		}
	}
	steps := float64(after.Runs - before.Runs)
	comm := (after.CommWait - before.CommWait).Seconds() / steps
	ranks, err := gather(ctx, b, []float64{colRSS: rss, colComm: comm, colPeak: peak, colCPU: cpu.Seconds() / steps,
		colAllocs: float64(b.memory.objects) / steps, colGrowth: float64(b.memory.last - b.memory.first)})
	if err != nil {
		return nil, err
	}
	r := b.result(s, int(inner), steps, before, after, ranks)
	r.apart(first.And(later))
	return r, nil
}

// distances are those between the processors that rank 0 may use, which the others wait
// for: nobody else is told.
func (b *bench) distances(ctx context.Context) (d distance.Distances, err error) {
	if b.rank == 0 {
		if d, err = distance.Measure(ctx); err != nil {
			return d, err
		}
	}
	return d, b.barrier(ctx)
}

// warmUp runs the first steps and decides how many steps make a sample.
func (b *bench) warmUp(ctx context.Context) (inner int64, err error) {
	var last time.Duration
	for i := range b.o.warmup {
		began := time.Now()
		if err := b.one(ctx); err != nil {
			return 0, err
		}
		last = time.Since(began)
		b.show.Progress("warm-up step", "steps/s", int64(i+1), int64(b.o.warmup))
	}
	return fromRank0(ctx, b, max(1, int64(math.Ceil(float64(sampleTime)/float64(last)))))
}

// repeat takes samples until rank 0 has enough quiet ones, or no more time.
func (b *bench) repeat(ctx context.Context, inner int64) (*samples, error) {
	threads := b.o.how.Threads * len(b.load.pids)
	s := &samples{want: b.o.steps, limit: b.o.quiet + max(0, 1-float64(threads)/float64(b.load.on.Count()))}
	began := time.Now()
	end := began.Add(time.Duration(b.o.maxS * float64(time.Second)))
	for {
		x, err := b.sample(ctx, inner)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, x)
		b.show.Say("sample", "samples/s", s.standing(time.Since(began), b.o.maxS), int64(len(s.all)), -1)
		enough := int64(0)
		if s.quiet() >= b.o.steps || time.Now().After(end) && len(s.all) >= 3 {
			enough = 1
		}
		if enough, err = fromRank0(ctx, b, enough); err != nil || enough == 1 {
			return s, err
		}
	}
}

func (b *bench) sample(ctx context.Context, inner int64) (x sample, err error) {
	if err := b.barrier(ctx); err != nil {
		return x, err
	}
	if err := b.load.start(); err != nil {
		return x, err
	}
	if err := b.memory.start(); err != nil {
		return x, err
	}
	began := time.Now()
	for range inner {
		if err := b.one(ctx); err != nil {
			return x, err
		}
	}
	if err := b.barrier(ctx); err != nil {
		return x, err
	}
	x.step = time.Since(began).Seconds() / float64(inner)
	if err := b.memory.stop(); err != nil {
		return x, err
	}
	x.other, err = b.load.stop()
	return x, err
}

// perOp is the time of each kind of op in one step.
func perOp(before, after exec.Stats, steps float64) map[string]opTime {
	ops := map[string]opTime{}
	for kind, a := range after.Ops {
		was := before.Ops[kind]
		t := opTime{MS: 1e3 * (a.Time - was.Time).Seconds() / steps, Calls: float64(a.Calls-was.Calls) / steps}
		if t.MS > 0 {
			t.GFLOPS = float64(a.Flops-was.Flops) / 1e6 / steps / t.MS
		}
		ops[kind] = t
	}
	return ops
}

// maxRSS is the largest resident size of this process so far, in MiB.
func maxRSS() float64 { return float64(usage().Maxrss) / 1024 }

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func usage() (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("stepbench: getrusage of this very process: %v", err)) // the kernel has no reason to refuse
	}
	return u
}
