package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// reachLimit bounds the try of two launchers' ranks to share memory.
const reachLimit = 2 * time.Second

// claims are the hosts that ranks of several launchers are said to share. That
// they have one kernel and one network does not prove that they can: the first
// rank of a host listens, the first of each other launcher there (a delegate)
// tries to be given memory, and those that do not succeed are a host of their
// own, to be reached by TCP.
type claims struct {
	rank      int
	hosts     []string
	launchers []int
	first     map[string]int // of each host, its first rank
	delegates map[claim]int  // of each launcher but the first of its host, its first rank there
}

// claim is that a launcher is on a host.
type claim struct {
	host     string
	launcher int
}

func newClaims(cfg Config) claims {
	c := claims{rank: cfg.Rank, hosts: cfg.Hosts, launchers: cfg.Launchers, first: map[string]int{}, delegates: map[claim]int{}}
	for r, launcher := range c.launchers {
		host := c.hosts[r]
		first, seen := c.first[host]
		if !seen {
			c.first[host], first = r, r
		}
		if _, seen := c.delegates[claim{host, launcher}]; !seen && launcher != c.launchers[first] {
			c.delegates[claim{host, launcher}] = r
		}
	}
	return c
}

// prove tries every claim and returns the hosts that are left: the same on all
// ranks. Without a claim it says nothing to anybody.
func (c claims) prove(ctx context.Context, cfg Config, log *slog.Logger) ([]string, error) {
	if len(c.delegates) == 0 {
		return c.hosts, nil
	}
	id := identity{rank: c.rank, job: sha256.Sum256([]byte(cfg.Job)), key: cfg.Key}
	var addr string
	if c.first[c.hosts[c.rank]] == c.rank {
		ln, err := listenLocal()
		if err != nil {
			return nil, err
		}
		serving := sync.WaitGroup{}
		serving.Go(func() { id.serveReach(ln, log) })
		defer serving.Wait()
		defer func() { _ = ln.Close() }() // all who tried are done
		addr = ln.Addr().String()
	}
	addrs, err := cfg.Exchange(ctx, "collective/host "+cfg.Job+" reach", []byte(addr))
	if err != nil {
		return nil, fmt.Errorf("exchange addresses: %w", err)
	}
	var failure string
	if d, ok := c.delegates[claim{c.hosts[c.rank], c.launchers[c.rank]}]; ok && d == c.rank && len(addrs) == cfg.Size {
		first := c.first[c.hosts[c.rank]]
		if err := id.reach(ctx, string(addrs[first]), first); err != nil {
			failure = err.Error()
		}
	}
	failures, err := cfg.Exchange(ctx, "collective/host "+cfg.Job+" reached", []byte(failure))
	if err != nil {
		return nil, fmt.Errorf("exchange who shares memory: %w", err)
	}
	if len(addrs) != cfg.Size || len(failures) != cfg.Size {
		return nil, fmt.Errorf("exchange who shares memory: got %d and %d answers, expected %d", len(addrs), len(failures), cfg.Size)
	}
	return c.left(failures, log), nil
}

// left are the hosts after the tries; failures has what went wrong, by rank.
func (c claims) left(failures [][]byte, log *slog.Logger) []string {
	hosts := slices.Clone(c.hosts)
	for r, host := range c.hosts {
		d, tried := c.delegates[claim{host, c.launchers[r]}]
		if !tried || len(failures[d]) == 0 {
			continue
		}
		hosts[r] = fmt.Sprintf("%s, launcher %d", host, c.launchers[r])
		if r == c.rank {
			log.Info("memory is not shared with other ranks of this host, TCP takes its place", "first_rank", c.first[host], "err", string(failures[d]))
		}
	}
	return hosts
}

// serveReach gives memory to the ranks of this job that ask at ln, until that is
// closed.
func (id identity) serveReach(ln net.Listener, log *slog.Logger) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		asking.Go(func() {
			defer func() { _ = c.Close() }()
			if err := id.lend(c); err != nil {
				log.Debug("memory not shared", "err", err)
			}
		})
	}
}

// lend answers a reach.
func (id identity) lend(c net.Conn) error {
	if _, err := id.answer(c); err != nil {
		return err
	}
	f, err := createSegment("ebtrain try", 1, 1)
	if err != nil {
		return err
	}
	return errors.Join(sendFile(c.(*net.UnixConn), f), f.Close())
}

// reach asks for memory at addr, as a star would, and maps it.
func (id identity) reach(ctx context.Context, addr string, first int) error {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	c, err := id.dial(ctx, "unixpacket", addr, call{forLocal, first})
	if err != nil {
		return err
	}
	s := &star{conns: []*net.UnixConn{c.(*net.UnixConn)}}
	defer s.close()
	if err := s.sameUser(); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Now().Add(reachLimit)); err != nil {
		return err
	}
	got, err := s.receive(0)
	if err != nil {
		return fmt.Errorf("receive shared memory: %w", err)
	}
	seg, err := takeSegment(got.file, 1, 1)
	if err != nil {
		return err
	}
	return seg.unmap()
}
