package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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
	name = w.Job() + ", " + name
	if w.Rank() >= n {
		return nil, w.follow(ctx, n, name)
	}
	hosts, launchers := w.Hosts()[:n], w.Nodes()[:n]
	if apart {
		launchers = nil
		for r := range hosts {
			hosts[r] = fmt.Sprintf("rank %d", r)
		}
	}
	swap := func(ctx context.Context, what string, mine []byte) ([][]byte, error) {
		all, _, err := w.swapAmong(ctx, n, what, blobFollows, mine)
		return all, err
	}
	comm, err := host.New(ctx, host.Config{
		Rank: w.Rank(), Size: n, Hosts: hosts, Launchers: launchers, ListenIP: w.Addr(), FirstPort: w.Ports().First, LastPort: w.Ports().Last,
		Job: name, Key: w.Key(), Exchange: swap, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		_, _, told := w.swapAmong(ctx, n, name, failed, []byte(err.Error()))
		return nil, errors.Join(fmt.Errorf("connect the first %d ranks: %w", n, err), told)
	}
	_, _, err = w.swapAmong(ctx, n, name, connected, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect the first %d ranks: %w", n, err), comm.Close())
	}
	return comm, nil
}

// follow takes part in the exchanges of the first n ranks until they are connected: an
// exchange is one of all ranks.
func (w *World) follow(ctx context.Context, n int, name string) error {
	for {
		_, state, err := w.swapAmong(ctx, n, name, blobFollows, nil)
		if err != nil || state == connected {
			return err
		}
	}
}

// swapAmong is an exchange among the first n ranks, in which all take part, and how far
// they are.
func (w *World) swapAmong(ctx context.Context, n int, name string, state byte, mine []byte) ([][]byte, byte, error) {
	all, err := collective.GatherBytes(ctx, w.Comm, name, append([]byte{state}, mine...))
	if err != nil {
		return nil, 0, err
	}
	all = all[:n]
	for r, b := range all {
		if b[0] == failed && r != w.Rank() {
			return nil, failed, fmt.Errorf("rank %d: %s", r, b[1:])
		}
		state = b[0] // the same on all that are well
		all[r] = b[1:]
	}
	return all, state, nil
}
