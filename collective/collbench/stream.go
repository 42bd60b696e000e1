package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/congestion"
	"ebtrain/collective/cost"
	"ebtrain/collective/timing"
)

// A stream is a TCP connection between the leaders of two hosts, both of which
// send and receive at once: host 0 with host 1, 2 with 3, and so on, at the same
// time. The zero stream is that of a rank that has none.
type stream struct {
	conn  net.Conn
	leads bool // this end says when it is enough
	out   []byte
	in    []byte
}

// tokenBytes is what the end that dials shows, so that nobody else is let in.
const tokenBytes = 32

// connectTime bounds how long the ends of a stream look for each other.
const connectTime = 30 * time.Second

// openStreams connects all pairs of hosts. Every rank calls it; most bytes is the
// largest size.
func openStreams(ctx context.Context, p place, most int) (s *stream, err error) {
	s = &stream{}
	leaders := p.leaders()
	at := slices.Index(leaders, p.Rank())
	listens, dials := at >= 0 && at%2 == 0 && at+1 < len(leaders), at >= 0 && at%2 == 1
	var ln net.Listener
	card := make([]byte, tokenBytes) // of who listens: a token and the address
	if listens {
		if ln, err = listen(p.listenIP, p.firstPort, p.lastPort); err != nil {
			return nil, fmt.Errorf("listen for the other end of a stream: %w", err)
		}
		defer func() { err = errors.Join(err, ln.Close()) }()
		rand.Read(card) // never fails
		card = append(card, ln.Addr().String()...)
	}
	cards, err := collective.GatherBytes(ctx, p, "streams", card)
	if err != nil {
		return nil, err
	}
	if s.leads = listens; !listens && !dials {
		return s, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("not connected within %v", connectTime))
	defer cancel()
	if listens {
		s.conn, err = await(ctx, ln, card[:tokenBytes])
	} else {
		s.conn, err = call(ctx, cards[leaders[at-1]])
	}
	if err != nil {
		return nil, fmt.Errorf("stream between hosts %d and %d: %w", at&^1, at|1, err)
	}
	s.out, s.in = make([]byte, most+1), make([]byte, most+1)
	return s, nil
}

// listen listens on a free one of the ports, or on any if they are 0.
func listen(ip string, first, last int) (net.Listener, error) {
	config := net.ListenConfig{Control: congestion.Choose}
	var errs []error
	for port := first; port <= last; port++ {
		ln, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
		if err == nil {
			return ln, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// await takes the first connection that shows the token.
func await(ctx context.Context, ln net.Listener, token []byte) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // Accept then ends
	defer stop()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		shown := make([]byte, tokenBytes)
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(conn, shown); err == nil && string(shown) == string(token) {
			return conn, conn.SetReadDeadline(time.Time{})
		}
		_ = conn.Close() // a stranger
	}
}

func call(ctx context.Context, card []byte) (net.Conn, error) {
	conn, err := (&net.Dialer{Control: congestion.Choose}).DialContext(ctx, "tcp", string(card[tokenBytes:]))
	if err != nil {
		return nil, err
	}
	if _, err = conn.Write(card[:tokenBytes]); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (s *stream) close() error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close()
}

// times sends so many bytes both ways, repeatedly, and is how long they took on
// the slowest pair of hosts. Every rank calls it.
func (s *stream) times(ctx context.Context, p place, opt options, bytes int) (*cost.Times, error) {
	state := make([]float64, 4) // best, 10th percentile, median, and 1 after a failure
	var failed error
	own := &cost.Times{}
	if s.conn != nil {
		stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) }) // fails where it is closed: as good
		times, err := s.repeat(opt, bytes)
		stop()
		if failed = err; err == nil {
			own = timing.TimesOf(times)
			state[0], state[1], state[2] = own.Best, own.P10, own.Median
		} else {
			state[3] = 1
		}
	}
	if err := collective.Do(ctx, p.Comm, collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(state)}); err != nil {
		return nil, errors.Join(failed, err)
	}
	switch {
	case failed != nil:
		return nil, fmt.Errorf("stream of %d bytes: %w", bytes, failed)
	case state[3] != 0:
		return nil, errors.New("a stream between two other hosts has failed")
	}
	return &cost.Times{Best: state[0], P10: state[1], Median: state[2], Reps: own.Reps}, nil
}

// repeat exchanges messages until the end that leads has seen enough: it says in
// the last byte of each whether another follows.
func (s *stream) repeat(opt options, bytes int) (times []float64, err error) {
	end := time.Now().Add(opt.maxTime)
	for more := true; more; {
		begin := time.Now()
		s.out[bytes] = 0
		if len(times) < opt.iters && (len(times) < timing.Fewest || begin.Before(end)) {
			s.out[bytes] = 1
		}
		if err := s.swap(bytes + 1); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin).Seconds())
		said := s.in
		if s.leads {
			said = s.out
		}
		more = said[bytes] == 1
	}
	return times[min(1, len(times)-1):], nil // in the first the other end may have come late
}

// swap sends and receives n bytes at once.
func (s *stream) swap(n int) error {
	sent := make(chan error, 1)
	go func() {
		_, err := s.conn.Write(s.out[:n])
		sent <- err
	}()
	_, err := io.ReadFull(s.conn, s.in[:n])
	return errors.Join(err, <-sent)
}
