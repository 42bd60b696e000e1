package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
)

// accept waits until every expected call has come in, then closes ln. Who
// cannot prove the key is turned away and does not disturb.
func (id identity) accept(ctx context.Context, ln net.Listener, want []call, log *slog.Logger) (map[call]net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	d := openDoor(ctx, id, ln, len(want), log)
	defer func() {
		cancel()
		<-d.shut
	}()
	got := map[call]net.Conn{}
	for len(got) < len(want) {
		select {
		case a := <-d.arrivals:
			if got[a.call] != nil || !slices.Contains(want, a.call) {
				log.Warn("unexpected connection", "from_rank", a.call.rank, "purpose", string(a.call.purpose))
				_ = a.conn.Close()
				continue
			}
			got[a.call] = a.conn
		case <-d.shut:
			closeAll(got)
			if !errors.Is(d.deaf, net.ErrClosed) { // out of descriptors, say: who has not been taken in is not to blame
				return nil, fmt.Errorf("of %d connections of other ranks %d could not be taken in: %w%s", len(want), len(want)-len(got), d.deaf, moreFiles(d.deaf))
			}
			return nil, fmt.Errorf("waiting at %s for rank %v to connect: %w", ln.Addr(), missing(want, got), cmp.Or(context.Cause(ctx), net.ErrClosed))
		}
	}
	return got, nil
}

// door takes connections in and lets through who proves the key, many at a time, until ctx
// ends, which also closes the listener and every connection in a handshake.
type door struct {
	id         identity
	log        *slog.Logger
	newcomers  newcomers
	handshakes sync.WaitGroup
	arrivals   chan arrival
	shut       chan struct{} // closed when nobody comes in any more, and no handshake is under way
	deaf       error         // why nobody comes in any more, once shut is closed
}

// arrival is a connection of a rank that has proved the key.
type arrival struct {
	call call
	conn net.Conn
}

// openDoor is for so many expected calls.
func openDoor(ctx context.Context, id identity, ln net.Listener, expected int, log *slog.Logger) *door {
	d := &door{id: id, log: log, newcomers: newcomers{most: silent + expected}, arrivals: make(chan arrival), shut: make(chan struct{})}
	context.AfterFunc(ctx, func() { _ = ln.Close() })
	go func() {
		defer close(d.shut)
		for d.deaf == nil {
			var c net.Conn
			if c, d.deaf = ln.Accept(); d.deaf == nil {
				d.newcomers.add(c)
				d.handshakes.Go(func() { d.handshake(ctx, c) })
			}
		}
		d.handshakes.Wait()
	}()
	return d
}

// handshake lets c through or turns it away.
func (d *door) handshake(ctx context.Context, c net.Conn) {
	end := context.AfterFunc(ctx, func() { _ = c.Close() })
	got, err := d.id.answerAfter(c, func() { d.newcomers.remove(c) })
	d.newcomers.remove(c)
	if !end() || err != nil {
		d.log.Warn("connection refused", "from", c.RemoteAddr().String(), "err", err)
		_ = c.Close()
		return
	}
	select {
	case d.arrivals <- arrival{got, c}:
	case <-ctx.Done():
		_ = c.Close()
	}
}

// newcomers are the connections that have said nothing yet, oldest first.
type newcomers struct {
	most  int
	mu    sync.Mutex
	conns []net.Conn
}

// add takes c in and closes the oldest of too many.
func (w *newcomers) add(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.conns) == w.most {
		_ = w.conns[0].Close() // its handshake fails
		w.conns = w.conns[1:]
	}
	w.conns = append(w.conns, c)
}

// remove is for what has spoken, or is gone.
func (w *newcomers) remove(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.conns, c); i >= 0 {
		w.conns = slices.Delete(w.conns, i, i+1)
	}
}

func closeAll(conns map[call]net.Conn) {
	for _, c := range conns {
		_ = c.Close() // nothing was said that could be lost
	}
}

func missing(want []call, got map[call]net.Conn) []int {
	var ranks []int
	for _, w := range want {
		if got[w] == nil && !slices.Contains(ranks, w.rank) {
			ranks = append(ranks, w.rank)
		}
	}
	return ranks
}
