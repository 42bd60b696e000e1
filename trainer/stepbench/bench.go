package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/processors"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/world"
)

// bench is one rank's benchmark. It is used by one goroutine.
type bench struct {
	o           *options
	net         net
	model       model
	backend     exec.Backend
	comm        collective.Comm // nil in a world of one
	rank, world int
	show        *progressbar.Phases // of work that takes long; no part of a sample

	graph    *graph.Graph
	specs    []nn.Variable
	parts    ddp.Parts // of the variables of specs
	vars     exec.Vars
	step     exec.Program
	wholes   *graph.Graph                // makes whole weights of parts, nil if there are none
	whole    exec.Program                // of wholes
	names    []string                    // of the report
	schedule func(step int64, epoch int) // fills the model's own inputs
	source   func()                      // copies the next batch into the step
	load     cpuLoad
	memory   memory
	compile  time.Duration

	next   int64     // number of the next step
	losses []float64 // of the last step, by names
}

// rank runs the benchmark on this rank; rank 0 prints.
func rank(ctx context.Context, o *options, w *world.World, out io.Writer, show *progressbar.Phases) (err error) {
	n := nets[o.net]
	m, err := n.model(o)
	if err != nil {
		return err
	}
	if o.how.Threads, err = device.Threads(device.Config{Threads: o.how.Threads, Sharing: w.Sharing()}); err != nil {
		return err
	}
	backend, err := device.Open(device.Config{Device: o.how.Device, Precision: o.how.Precision, Threads: o.how.Threads, LocalRank: w.LocalRank(), LocalRanks: w.LocalSize(), Graph: o.how.Graph,
		Smaller: "choose a smaller --batch or --width, or try --remat"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	// What goes wrong in a collective is an error besides, and its flight record
	// is long.
	if err := w.Connect(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	b := &bench{o: o, net: n, model: m, backend: backend, comm: w.Comm, rank: w.Rank(), world: w.Size(), show: show}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if b.load, err = b.machine(ctx, w.Hosts(), w.Processors()); err != nil {
		return err
	}
	r, err := b.all(ctx)
	b.show.End()
	if err != nil || b.rank != 0 {
		return err
	}
	return r.print(out, o.json)
}

// prepare builds and compiles the step, and makes sure that all ranks agree.
func (b *bench) prepare(ctx context.Context) (err error) {
	began := time.Now()
	if b.graph, b.specs, err = b.model.Step(b.world, b.o.batch/b.world); err != nil {
		return err
	}
	if err := device.CheckMemory(b.backend, b.graph, "--batch or --width"); err != nil {
		return err
	}
	if b.o.how.ShardMoments {
		if err := b.shard(); err != nil {
			return err
		}
	}
	b.vars = b.backend.NewVars()
	if err := nn.Initialise(b.vars, nn.OfRank(b.specs, b.parts.State), b.o.seed); err != nil {
		return err
	}
	if err := b.parts.Cut(b.vars, b.rank); err != nil {
		return err
	}
	reduced, err := b.backend.Connect(ctx, b.comm)
	if err != nil {
		return err
	}
	b.step, err = b.backend.Compile(b.graph, exec.Options{Name: "step", Vars: b.vars, Comm: reduced, Profile: b.o.profile, Remat: b.o.how.Remat})
	if err != nil {
		return err
	}
	if b.wholes != nil {
		if b.whole, err = b.backend.Compile(b.wholes, exec.Options{Name: "whole weights", Vars: b.vars, Comm: reduced}); err != nil {
			return errors.Join(err, b.step.Close())
		}
	}
	b.compile = time.Since(began)
	b.names, b.schedule = algo.Names(b.model.Report()), b.model.Feeder(b.step)
	b.source = b.newSource()
	if b.comm == nil {
		return nil
	}
	text := fmt.Sprintf("flags %+v\ngraph %x\n", *b.o, b.graph.Digest())
	if b.wholes != nil {
		text += fmt.Sprintf("whole weights %x\n", b.wholes.Digest())
	}
	if err := ddp.Agree(ctx, b.comm, "program", text); err != nil {
		return errors.Join(err, b.close())
	}
	return nil
}

// machine is the load of the machine that this rank is on. hosts is the host
// of each rank, and on are the processors of this one's.
func (b *bench) machine(ctx context.Context, hosts []string, on processors.Set) (cpuLoad, error) {
	l := cpuLoad{on: on}
	pids, err := gather(ctx, b, []int64{int64(os.Getpid())})
	if err != nil {
		return l, err
	}
	for r, pid := range pids {
		if b.world == 1 || hosts[r] == hosts[b.rank] {
			l.pids = append(l.pids, int(pid))
		}
	}
	return l, nil
}

// one runs one step and checks its losses.
func (b *bench) one(ctx context.Context) error {
	b.feed(b.next)
	if err := exec.Run(ctx, b.step); err != nil {
		return fmt.Errorf("step %d: %w", b.next, err)
	}
	out := b.step.Output(algo.OutputReport)
	b.losses = b.losses[:0]
	for i, name := range b.names {
		v := out.At(i)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("step %d: %s is %v: the numbers of a step that diverged mean nothing", b.next, name, v)
		}
		b.losses = append(b.losses, v)
	}
	b.next++
	return nil
}

// barrier waits for all ranks.
func (b *bench) barrier(ctx context.Context) error {
	if b.comm == nil {
		return nil
	}
	return collective.Do(ctx, b.comm, collective.Request{Kind: collective.Barrier, Label: "sample"})
}

// gather is the concatenation of every rank's mine, in the order of the ranks.
func gather[T collective.Elem](ctx context.Context, b *bench, mine []T) ([]T, error) {
	if b.comm == nil {
		return mine, nil
	}
	all := make([]T, b.world*len(mine))
	copy(all[b.rank*len(mine):], mine)
	return all, collective.Do(ctx, b.comm, collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(all), Label: "results"})
}

// fromRank0 is rank 0's number, on every rank.
func fromRank0(ctx context.Context, b *bench, n int64) (int64, error) {
	if b.comm == nil {
		return n, nil
	}
	v := []int64{n}
	err := collective.Do(ctx, b.comm, collective.Request{Kind: collective.Broadcast, Vec: collective.VecOf(v), Label: "go on?"})
	return v[0], err
}
