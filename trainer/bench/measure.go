package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/collective/processors"
	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/device"
	"ebtrain/trainer/trained"
	"ebtrain/trainer/world"
)

const (
	turnTime = 200 * time.Millisecond // of the steps of a turn, about
	mostIn   = 50                     // steps of a turn
	warm     = 2                      // steps before the first turn
)

// bench is one rank's part in the measuring. It is used by one goroutine.
type bench struct {
	o       *options
	w       *world.World
	src     data.Source
	backend exec.Backend
	groups  map[int]*host.Comm // of the first ranks, by how many; nil where this rank is in none
	rigs    []*rig             // by case
	r       *Report            // rank 0's is filled
	beside  []*beside
	base    int // the case of their groups
	begun   time.Time
}

// measure runs the benchmark on this rank; rank 0 prints.
func measure(ctx context.Context, o *options, w *world.World, src data.Source, cases []*Case, args []string, out io.Writer) (err error) {
	b := &bench{o: o, w: w, src: src, groups: map[int]*host.Comm{}, begun: time.Now()}
	if o.how.Threads, err = device.Threads(device.Config{Threads: o.how.Threads, Sharing: w.Sharing()}); err != nil {
		return err
	}
	b.r = &Report{Format: Format, Version: Version, Begun: b.begun.UTC(), Program: cliflag.Version("bench"), Args: args, Seed: o.settings.Seed,
		Method: method(o), Data: fmt.Sprintf("%s (%s)", o.data, trained.Noun(trained.Of(src.Schema()))), Speed: trained.Speed(trained.Of(src.Schema())), Threads: o.how.Threads, Sharded: o.how.ShardMoments, CPU: processors.Model(), Cores: w.Processors().Count(), Load: processors.Load(),
		Hosts: w.Hosts(), Machines: w.Machines(), Cases: cases}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	b.r.Device = exec.Describe(b.backend)
	if err := b.all(ctx); err != nil || w.Rank() != 0 {
		return err
	}
	return b.finish(ctx, out)
}

// method is what is trained, in words.
func method(o *options) string {
	text := o.settings.Algo
	for _, s := range []string{o.preset, o.settings.Net} {
		if s != "" {
			text += " " + s
		}
	}
	return text + " " + o.how.Precision
}

// prepare connects the groups and compiles every case.
func (b *bench) prepare(ctx context.Context) (err error) {
	b.backend, err = device.Open(device.Config{Device: b.o.how.Device, Precision: b.o.how.Precision, Threads: b.o.how.Threads, LocalRank: b.w.LocalRank(), LocalRanks: b.w.LocalSize(), Graph: b.o.how.Graph,
		Smaller: "choose a smaller --batch or fewer --ranks, or try --remat"})
	if err != nil {
		return err
	}
	if err := b.w.Connect(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	made := map[int]bool{1: true} // the same on all ranks, as the calls of First must be
	for _, c := range b.r.Cases {
		if !made[c.Ranks] {
			made[c.Ranks] = true
			g, err := b.w.First(ctx, c.Ranks, fmt.Sprintf("%d ranks", c.Ranks), false)
			if err != nil {
				return err
			}
			if g != nil {
				b.groups[c.Ranks] = g
			}
		}
		c.OnHosts = onHosts(b.r.Hosts[:c.Ranks])
	}
	if err := b.prepareBeside(ctx); err != nil {
		return err
	}
	for _, c := range b.r.Cases {
		b.w.Tell(0, fmt.Sprintf("compile for %d ranks", c.Ranks))
		rig, err := b.newRig(ctx, c)
		if err != nil {
			return fmt.Errorf("%d ranks, batch %d: %w", c.Ranks, c.Batch, err)
		}
		b.rigs = append(b.rigs, rig)
	}
	return b.compileBeside(ctx)
}

// onHosts is how many ranks each host has, by its first rank.
func onHosts(hosts []string) (n []int) {
	at := map[string]int{}
	for _, h := range hosts {
		if _, ok := at[h]; !ok {
			at[h] = len(n)
			n = append(n, 0)
		}
		n[at[h]]++
	}
	return n
}

// all measures; rank 0 has the results.
func (b *bench) all(ctx context.Context) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	if err := b.timeCollectives(ctx, "before"); err != nil {
		return err
	}
	if err := b.timeBusy(ctx); err != nil {
		return err
	}
	var longest float64
	for i := range b.rigs {
		t, err := b.turn(ctx, i, warm)
		if err != nil {
			return err
		}
		b.r.Cases[i].First = t.first
		longest = max(longest, t.step)
	}
	inner, err := b.fromRank0(ctx, min(mostIn, int64(math.Ceil(float64(turnTime.Microseconds())/max(longest, 1)))))
	if err != nil {
		return err
	}
	b.r.Inner = int(inner)
	if err := b.rounds(ctx, inner); err != nil {
		return err
	}
	for i := range b.rigs {
		if err := b.trace(ctx, i); err != nil {
			return err
		}
	}
	if err := b.timeCollectives(ctx, "after"); err != nil {
		return err
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	b.r.Took = time.Since(b.begun).Seconds()
	return nil
}

// rounds has all cases take turns, in an order that is drawn for each round, until rank
// 0 has seen enough.
func (b *bench) rounds(ctx context.Context, inner int64) error {
	order := rand.New(rand.NewPCG(b.o.settings.Seed, 0))
	end := time.Now().Add(b.o.maxTime)
	for {
		for _, i := range order.Perm(len(b.rigs)) {
			c := b.r.Cases[i]
			t, err := b.turn(ctx, i, inner)
			if err != nil {
				return err
			}
			c.Turns = append(c.Turns, t.step)
			c.add(t.splits)
			c.took(t)
		}
		if err := b.besideTurns(ctx, inner); err != nil {
			return err
		}
		if err := b.amongBusy(ctx, inner); err != nil {
			return err
		}
		b.r.Rounds++
		enough := int64(0)
		if b.enough() || time.Now().After(end) {
			enough = 1
		}
		enough, err := b.fromRank0(ctx, enough)
		if err != nil || enough == 1 {
			return err
		}
	}
}

// enough says whether the median of every case is known well.
func (b *bench) enough() bool {
	if b.r.Rounds < fewest {
		return false
	}
	for _, c := range b.r.Cases {
		if 100*halfWidth(medianOf(c.Turns)) > b.o.confidence {
			return false
		}
	}
	return true
}

// turn is a few steps of a case.
type turn struct {
	step   float64 // of a step, as rank 0 saw it, in microseconds
	splits []split
	first  map[string]float64 // losses of the first step
	others float64            // what others had of processors meanwhile, in microseconds
	lasted float64            // all of it, in microseconds
}

// part is what a rank tells of its turn.
type part struct {
	Step  float64
	Parts []parts
	First map[string]float64
	Used  float64 // of the processors of the machine's ranks, by all
}

// turn has the ranks of a case do a step, which fetches what others have displaced, and
// n steps more, while the others sleep.
func (b *bench) turn(ctx context.Context, i int, n int64) (t turn, err error) {
	rig := b.rigs[i]
	b.w.Tell(int64(b.r.Rounds), fmt.Sprintf("%d ranks", b.r.Cases[i].Ranks))
	var mine part
	if rig != nil {
		if mine, err = rig.measured(ctx, n); err != nil {
			return t, err
		}
	}
	all, err := gather(ctx, b.w.Comm, mine)
	if err != nil {
		return t, err
	}
	all = all[:b.r.Cases[i].Ranks]
	ranks := make([][]parts, len(all))
	for r := range all {
		ranks[r] = all[r].Parts
	}
	t = turn{step: all[0].Step, splits: splitsOf(ranks), first: all[0].First, others: all[0].Used, lasted: all[0].Step * float64(n)}
	for r, on := range b.r.Machines[:len(all)] {
		if on == b.r.Machines[0] {
			for _, p := range ranks[r] {
				t.others -= p.Busy
			}
		}
	}
	return t, nil
}

// measured does a step, which fetches what others have displaced, and n steps more, of
// which it tells.
func (r *rig) measured(ctx context.Context, n int64) (m part, err error) {
	if err := r.trainer.Advance(ctx, 1); err != nil {
		return m, err
	}
	r.seen.parts = r.seen.parts[:0]
	before, err := processors.WorkedOn(r.on)
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := r.trainer.Advance(ctx, n); err != nil {
		return m, err
	}
	m = part{Step: time.Since(began).Seconds() * 1e6 / float64(n), Parts: r.seen.parts, First: r.seen.first}
	after, err := processors.WorkedOn(r.on)
	m.Used = us(after - before)
	return m, err
}

// gather is every rank's mine, by rank. c is nil in a world of one.
func gather[T any](ctx context.Context, c collective.Comm, mine T) ([]T, error) {
	if c == nil {
		return []T{mine}, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	texts, err := collective.GatherBytes(ctx, c, "turn", text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &all[r]); err != nil {
			return nil, fmt.Errorf("what rank %d measured: %w", r, err)
		}
	}
	return all, nil
}

// fromRank0 is rank 0's number, on every rank.
func (b *bench) fromRank0(ctx context.Context, n int64) (int64, error) {
	if b.w.Comm == nil {
		return n, nil
	}
	v := []int64{n}
	err := collective.Do(ctx, b.w.Comm, collective.Request{Kind: collective.Broadcast, Vec: collective.VecOf(v), Label: "go on?"})
	return v[0], err
}

func (b *bench) close() error {
	var errs []error
	for _, r := range b.rigs {
		if r != nil {
			errs = append(errs, r.close())
		}
	}
	for _, o := range b.beside {
		errs = append(errs, o.close())
	}
	for _, g := range b.groups {
		errs = append(errs, g.Close())
	}
	if b.backend != nil {
		errs = append(errs, b.backend.Close())
	}
	return errors.Join(errs...)
}
