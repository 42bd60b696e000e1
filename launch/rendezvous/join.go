package rendezvous

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/deadline"
	"ebtrain/launch/env"
	"ebtrain/launch/statuspage"
)

// ErrNoLauncher means that the environment names several ranks but no launcher
// through which they could meet.
var ErrNoLauncher = errors.New("no launcher")

// Join makes this process a member of its group. It blocks until the launcher
// has answered, which it does at once: when a rank runs, all nodes are there.
//
// A process started alone, or as the only rank, gets a Group of one that needs
// no launcher. Ranks of another launcher than ddplaunch are refused with an
// error that wraps ErrNoLauncher.
//
// Join takes over SIGUSR2, which asks for the last collectives (see Flights), and
// SIGINT, SIGTERM, SIGUSR1 and SIGHUP until Close: the first of
// them closes StopRequested on all ranks, and a moment after it they have their default
// effect again; but SIGHUP, which kernel and shell both send when a terminal
// goes away, is then ignored, and in a batch job so is SIGTERM. Under nohup it is ignored from the beginning. A group of
// one takes SIGPIPE like SIGHUP, since nobody reads its output any more (train | head),
// and in a batch job also closes StopRequested a minute before the job's time ends.
func Join(ctx context.Context, w env.Worker) (*Group, error) {
	g := &Group{w: w, done: make(chan struct{}), stop: make(chan struct{}), gathered: make(chan Message, 1), flights: make(chan struct{}, 1)}
	switch {
	case w.ControlFD >= 0:
		if err := g.connect(ctx); err != nil {
			return nil, err
		}
		g.wg.Go(g.receive)
	case w.Size > 1:
		return nil, fmt.Errorf("%w: started by %s as rank %d of %d, but ranks meet through ddplaunch only: run ddplaunch -nproc %d <program> (with several nodes, one ddplaunch per node)",
			ErrNoLauncher, w.Source, w.Rank, w.Size, w.LocalSize)
	default:
		if err := g.alone(); err != nil {
			return nil, err
		}
	}
	g.signals = make(chan os.Signal, 1)
	g.closed = make(chan struct{})
	signal.Notify(g.signals, unix.SIGINT, unix.SIGTERM, unix.SIGUSR1)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(g.signals, unix.SIGHUP)
	}
	if g.conn == nil { // else the launcher reads what this rank says
		signal.Notify(g.signals, unix.SIGPIPE)
	}
	g.wg.Go(g.watchSignals)
	if g.conn == nil { // else the launcher does it
		g.wg.Go(g.watchEnd)
	}
	g.usr2 = make(chan os.Signal, 1)
	signal.Notify(g.usr2, unix.SIGUSR2)
	g.wg.Go(g.watchFlights)
	return g, nil
}

// stopBefore is how long before the end of a batch job's time a group of one stops.
const stopBefore = time.Minute

// watchEnd asks this rank to stop before the time of the batch job ends.
func (g *Group) watchEnd() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := make(chan struct{})
	go deadline.Watch(ctx, os.Environ(), stopBefore, func(time.Time, string) { close(told) })
	select {
	case <-told:
		g.stopOnce.Do(func() { close(g.stop) })
	case <-g.closed:
	}
}

// connect takes over the inherited descriptors and greets the launcher.
func (g *Group) connect(ctx context.Context) error {
	c, err := inherit(g.w.ControlFD)
	if err != nil {
		return fmt.Errorf("EBTRAIN_CONTROL_FD=%d is not the socket of a launcher (%w): unset the EBTRAIN_ variables and RANK to run alone", g.w.ControlFD, err)
	}
	g.page, err = statuspage.Open(g.w.ProgressFD)
	if err != nil {
		_ = c.Close()
		return fmt.Errorf("EBTRAIN_PROGRESS_FD: %w", err)
	}
	unix.CloseOnExec(g.w.ProgressFD)
	g.conn = NewConn(c)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err = g.greet()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = g.conn.Close()
		_ = g.page.Close()
		return fmt.Errorf("join as rank %d of %d: %w", g.w.Rank, g.w.Size, err)
	}
	return nil
}

// inherit turns an inherited descriptor into a connection that children of
// this process do not inherit. A descriptor that is no socket is left alone.
func inherit(fd int) (net.Conn, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, errors.New("not a socket")
	}
	f := os.NewFile(uintptr(fd), "control")
	c, err := net.FileConn(f) // a duplicate, closed on exec
	return c, errors.Join(err, f.Close())
}

func (g *Group) greet() error {
	if err := g.conn.Send(Message{Kind: KindHello, Epoch: g.w.Restart, Text: g.w.Group, Code: os.Getpid()}); err != nil {
		return err
	}
	m, err := g.conn.Receive()
	switch {
	case err != nil:
		return fmt.Errorf("the launcher did not answer: %w", err)
	case m.Kind == KindRefuse:
		return m.Cause
	case m.Kind != KindWelcome:
		return fmt.Errorf("the launcher answered %q, want %q", m.Kind, KindWelcome)
	}
	if n := Size(m.Nodes); n != g.w.Size {
		return fmt.Errorf("WORLD_SIZE=%d contradicts the launcher, which has %d ranks", g.w.Size, n)
	}
	if g.w.Node >= len(m.Nodes) {
		return fmt.Errorf("GROUP_RANK=%d contradicts the launcher, which has %d nodes", g.w.Node, len(m.Nodes))
	}
	g.job, g.key, g.addr, g.ports, g.grows = m.Job, m.Key, m.Nodes[g.w.Node].Addr, m.Ports, m.Restart
	for i, n := range m.Nodes {
		for range n.Nproc {
			g.hosts, g.nodes = append(g.hosts, n.HostID), append(g.nodes, i)
		}
	}
	return nil
}

// alone makes a group of one.
func (g *Group) alone() error {
	_, id, err := LocalHost()
	if err != nil {
		return err
	}
	g.hosts, g.nodes, g.addr = []string{id}, []int{0}, "127.0.0.1"
	g.key = make([]byte, 32)
	nonce := make([]byte, 6)
	rand.Read(g.key)
	rand.Read(nonce)
	g.job = "alone-" + hex.EncodeToString(nonce) + "-e0"
	return nil
}
