package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/collective/simulate"
)

// busySizes are those at which collectives are timed beside busy processors, in bytes.
var busySizes = []int{256, 4 << 10, 32 << 10, 128 << 10, 1 << 20}

// busyApart is how long ranks compute before each of those: about as long as between two batch
// norms. A message then finds the caches full of something else, and its receiver asleep,
// and takes several times as much of a processor as one that follows another.
const busyApart = 300 * time.Microsecond

// timeBusy times all-reduces between hosts of the group that predictions are based on,
// each after computing, while other ranks keep its processors busy: so nobody has one to
// wait with, and what the group has of them is what messages and bytes take in a step. It
// is done where ranks that are to be predicted share processors.
func (b *bench) timeBusy(ctx context.Context) error {
	if b.o.fitTime == 0 || len(b.beside) == 0 || len(b.r.Cases[b.base].OnHosts) == 1 {
		return nil
	}
	group := b.r.Cases[b.base].Ranks
	b.w.Tell(0, "time collectives beside busy processors")
	stop := b.burnBeside(group)
	r, err := b.timeGroup(ctx, b.groups[group], group, "auto", busySizes, busyApart)
	if err = errors.Join(err, stop()); err == nil {
		b.r.Busy = append(b.r.Busy, r)
	}
	return err
}

// amongBusy has that group do steps while other ranks keep its processors busy. It then
// has of them what a step takes with all that a wait costs of a processor, and nothing to
// look for messages with. How long that lasts says nothing.
func (b *bench) amongBusy(ctx context.Context, n int64) error {
	if len(b.beside) == 0 {
		return nil
	}
	group := b.r.Cases[b.base].Ranks
	b.w.Tell(int64(b.r.Rounds), fmt.Sprintf("%d ranks beside busy processors", group))
	stop := b.burnBeside(group)
	var mine part
	var err error
	if rig := b.rigs[b.base]; rig != nil {
		mine, err = rig.measured(ctx, n)
	}
	if err != nil {
		return errors.Join(err, stop())
	}
	all, err := gather(ctx, b.w.Comm, mine) // nobody rests before all are through
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	for _, m := range all[:group] {
		for _, p := range m.Parts {
			b.r.among = append(b.r.among, p.Busy)
		}
	}
	return nil
}

// burnBeside has the ranks that follow a group keep all processors busy, in turn, until it
// is told to stop.
func (b *bench) burnBeside(group int) (stop func() error) {
	var stops []func() error
	if at := b.w.Rank() - group; at >= 0 {
		for ; at < b.r.Cores; at += b.w.Size() - group {
			stops = append(stops, burn(at))
		}
	}
	return func() error {
		var errs []error
		for _, stop := range stops {
			errs = append(errs, stop())
		}
		return errors.Join(errs...)
	}
}

// Who keeps a processor busy sleeps for a moment now and then, which leaves it idle for 2 %
// of the time: beside Go's own thread that wakes every 100 us, Linux 6.18 had given such a
// process the processor for itself, for up to 5 s, and the network had stood still
// (collective/DESIGN.md, "Nobody wakes threads").
const (
	burnFor = 5 * time.Millisecond
	restFor = 50 * time.Microsecond
)

// burn keeps the n-th processor that this process may run on busy, with memory as
// computing has it, until it is told to stop.
func burn(n int) (stop func() error) {
	var over atomic.Bool
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: no other goroutine is to be bound to a processor
		err := bind(n)
		v := make([]float32, 256<<10)
		rest := unix.NsecToTimespec(restFor.Nanoseconds())
		for begin := time.Now(); err == nil && !over.Load(); {
			for i := range v {
				v[i] = v[i]*0.5 + 1
			}
			if time.Since(begin) > burnFor {
				if err = unix.Nanosleep(&rest, nil); errors.Is(err, unix.EINTR) {
					err = nil
				}
				begin = time.Now()
			}
		}
		failed <- err
	}()
	return func() error {
		over.Store(true)
		return <-failed
	}
}

// bind binds this thread to the n-th processor that it may run on, counted round.
func bind(n int) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("processors that this process may run on: %w", err)
	}
	n %= all.Count()
	for cpu := 0; ; cpu++ {
		if all.IsSet(cpu) {
			if n == 0 {
				one.Set(cpu)
				break
			}
			n--
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("binding a thread to a processor: %w", err)
	}
	return nil
}

// fitBusy adds what messages take of processors to the model.
func (r *Report) fitBusy() error {
	if len(r.Busy) == 0 {
		return nil
	}
	line, err := simulate.Busy(r.Busy)
	if err != nil {
		return err
	}
	if line == nil {
		r.Unmeasured = append(r.Unmeasured, "What messages take of processors that ranks share is not known: collectives took so long that too few sizes were timed. Give --fit-time more.")
		return nil
	}
	r.Model.Between.Busy, r.Model.Between.BusyPerByte = line.Latency, line.PerByte
	return nil
}
