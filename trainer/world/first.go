package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// A message in an exchange of First: what follows is a blob, or the end of it all, well
// or with an error.
const (
	blobFollows = iota
	connected
	failed
)

// First connects the first n ranks, at least two, to a group of their own, beside Comm
// and other groups. All ranks call it, after Connect, between the same two collectives;
// those beyond n get nil. apart is as for ConnectApart. name is of the group, and used
// once. Whoever gets a Comm closes it before the World.
func (w *World) First(ctx context.Context, n int, name string, apart bool) (*host.Comm, error) {
	return w.Part(ctx, 0, n, name, apart)
}

// Part is First for n ranks from one on.
func (w *World) Part(ctx context.Context, from, n int, name string, apart bool) (*host.Comm, error) {
	name = w.Job() + ", " + name
	p := part{from, from + n}
	if w.Rank() < p.from || w.Rank() >= p.to {
		return nil, w.follow(ctx, p, name)
	}
	hosts, launchers := slices.Clone(w.Hosts()[p.from:p.to]), w.Nodes()[p.from:p.to]
	if apart {
		launchers = nil
		for r := range hosts {
			hosts[r] = fmt.Sprintf("rank %d", r)
		}
	}
	swap := func(ctx context.Context, what string, mine []byte) ([][]byte, error) {
		all, _, err := w.swapAmong(ctx, p, what, blobFollows, mine)
		return all, err
	}
	comm, err := host.New(ctx, host.Config{
		Rank: w.Rank() - p.from, Size: n, Hosts: hosts, Launchers: launchers, ListenIP: w.Addr(), FirstPort: w.Ports().First, LastPort: w.Ports().Last,
		Job: name, Key: w.Key(), Exchange: swap, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		_, _, told := w.swapAmong(ctx, p, name, failed, []byte(err.Error()))
		return nil, errors.Join(fmt.Errorf("connect %v: %w", p, err), told)
	}
	_, _, err = w.swapAmong(ctx, p, name, connected, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect %v: %w", p, err), comm.Close())
	}
	return comm, nil
}

// part is some of the ranks of a world, to excluded.
type part struct{ from, to int }

func (p part) String() string {
	if p.from == 0 {
		return fmt.Sprintf("the first %d ranks", p.to)
	}
	return fmt.Sprintf("ranks %d to %d", p.from, p.to-1)
}

// follow takes part in the exchanges of some ranks until they are connected: an
// exchange is one of all ranks.
func (w *World) follow(ctx context.Context, p part, name string) error {
	for {
		_, state, err := w.swapAmong(ctx, p, name, blobFollows, nil)
		if err != nil || state == connected {
			return err
		}
	}
}

// swapAmong is an exchange among some ranks, in which all take part, and how far
// they are.
func (w *World) swapAmong(ctx context.Context, p part, name string, state byte, mine []byte) ([][]byte, byte, error) {
	all, err := collective.GatherBytes(ctx, w.Comm, name, append([]byte{state}, mine...))
	if err != nil {
		return nil, 0, err
	}
	all = all[p.from:p.to]
	for r, b := range all {
		if b[0] == failed && p.from+r != w.Rank() {
			return nil, failed, fmt.Errorf("rank %d: %s", p.from+r, b[1:])
		}
		state = b[0] // the same on all that are well
		all[r] = b[1:]
	}
	return all, state, nil
}
