package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/trainer/world"
)

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
	ctx, done := w.Unstopped(ctx, unfinished)
	defer done()
	if err := world.Same(ctx, w.Rank(), opt.values, nil, "", w.Exchange); err != nil {
		if _, usage := errors.AsType[*cliflag.UsageError](err); usage { // the same on all ranks
			return err
		}
		return w.Fail(err)
	}
	connect := w.Connect
	if opt.apart {
		connect = w.ConnectApart
	}
	if err := connect(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return w.Fail(err)
	}
	ports := w.Ports()
	machines := 0
	switch {
	case worker.LocalSize == worker.Size:
		machines = 1
	case !opt.apart:
		machines = len((&place{host: w.Comm.(*host.Comm)}).leaders())
	}
	p := place{Comm: w.Comm, host: w.Comm.(*host.Comm), machines: machines, cores: w.Processors().Count(), listenIP: w.Addr(), firstPort: ports.First, lastPort: ports.Last}
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
	case o.peers != "":
		return cliflag.Usage("--peers compares ranks that collbench and the other libraries start themselves: leave out the launcher")
	case o.spaces:
		return cliflag.Usage("--network namespaces makes hosts for ranks that collbench starts: leave out the launcher")
	case o.said["hosts"]:
		return cliflag.Usage("--hosts pretends hosts for ranks that collbench starts; those of a launcher are where they are (--network tcp makes each a host)")
	}
	return nil
}

// place is this rank in the group that is measured.
type place struct {
	collective.Comm
	host *host.Comm // the same, or what the Comm is wrapped around

	machines int // that the hosts are on, 0 if that is not known
	cores    int // that ranks of this machine may use

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
