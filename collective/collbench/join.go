package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/trainer/world"
)

var errStopped = errors.New("asked to stop before all was measured")

// join measures as one of a launcher's ranks.
func join(ctx context.Context, opt options, worker env.Worker, environ []string, stdout io.Writer) (err error) {
	if err := opt.fits(worker); err != nil {
		return err
	}
	w, err := world.Join(ctx, environ)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	ctx, cancel := w.Context(ctx)
	defer cancel()
	ctx, done := untilStopped(ctx, w.StopRequested())
	defer done()
	if err := sameFlags(ctx, w, opt.values); err != nil {
		return err
	}
	connect := w.Connect
	if opt.apart {
		connect = w.ConnectApart
	}
	if err := connect(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return w.Fail(err)
	}
	ports := w.Ports()
	p := place{Comm: w.Comm, host: w.Comm.(*host.Comm), listenIP: w.Addr(), firstPort: ports.First, lastPort: ports.Last}
	if err := measureAll(ctx, p, opt, stdout); err != nil {
		return w.Fail(err)
	}
	return nil
}

// fits says whether the flags make sense for one of a launcher's ranks.
func (o options) fits(worker env.Worker) error {
	switch {
	case worker.Size < 2:
		return cliflag.Usage("one rank has nobody to exchange anything with: start two or more, as with ddplaunch -nproc 2 collbench")
	case o.said["nproc"] && o.nproc != worker.Size:
		return cliflag.Usage("--nproc %d, but this process is one of %d ranks: leave --nproc to the launcher", o.nproc, worker.Size)
	case o.said["hosts"]:
		return cliflag.Usage("--hosts pretends hosts for ranks that collbench starts; those of a launcher are where they are (--network tcp makes each a host)")
	}
	return nil
}

// sameFlags compares the flags of all ranks: a difference is the same error on all.
func sameFlags(ctx context.Context, w *world.World, mine map[string]string) error {
	blob, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	blobs, err := w.Exchange(ctx, "collbench flags", blob)
	if err != nil {
		return w.Fail(err)
	}
	all := make([]map[string]string, len(blobs))
	for r, b := range blobs {
		if err := json.Unmarshal(b, &all[r]); err != nil {
			return w.Fail(fmt.Errorf("flags of rank %d: %w", r, err))
		}
	}
	return compareFlags(all)
}

// compareFlags names the first flag that is not the same on all ranks.
func compareFlags(all []map[string]string) error {
	for r, theirs := range all {
		for _, name := range slices.Sorted(maps.Keys(all[0])) {
			if a, b := all[0][name], theirs[name]; a != b {
				return cliflag.Usage("--%s is %q on rank 0 and %q on rank %d: give all ranks the same flags", name, a, b, r)
			}
		}
	}
	return nil
}

// untilStopped is ctx until stop is closed. done releases it.
func untilStopped(ctx context.Context, stop <-chan struct{}) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-stop:
			cancel(errStopped)
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil); wg.Wait() }
}

// place is this rank in the group that is measured.
type place struct {
	collective.Comm
	host *host.Comm // the same, or what the Comm is wrapped around

	// Where streams between hosts may listen; see host.Config.
	listenIP            string
	firstPort, lastPort int
}

// leaders are the lowest ranks of the hosts, in their order.
func (p place) leaders() []int {
	var ranks []int
	for r, h := range p.host.Hosts() {
		if h == len(ranks) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// ranksOnHosts is how many ranks each host has.
func (p place) ranksOnHosts() []int {
	var n []int
	for _, h := range p.host.Hosts() {
		if h == len(n) {
			n = append(n, 0)
		}
		n[h]++
	}
	return n
}
