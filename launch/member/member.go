// Package member carries messages between the launchers of a job, and tells of
// launchers that are gone, over hashicorp/memberlist.
//
// Invariants:
//   - Everything is encrypted and authenticated (AES-GCM) with the job's key
//     and label: two jobs never merge, and a stranger gets nothing.
//   - There is no fixed port: the coordinator listens where it is told to, or
//     on a free port; every other launcher on a free port.
//   - Messages from one launcher to another arrive in order and once, as long
//     as both live and reach each other. An abort is gossiped too and may
//     arrive twice, or early.
//   - A launcher that is killed is known of at once, by the end of its life line;
//     one that falls silent is lost only if it does not answer when asked and no
//     data of its ranks arrive.
//
// A Member's methods may be called from any goroutine. Its goroutines end with
// Close, which waits for them.
package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// Timings. They were measured to detect a killed process among 8 and 16 within
// 0.9 to 1.7 s, with no false alarm on an overloaded CPU (design.md §6).
const (
	probeInterval  = 200 * time.Millisecond
	probeTimeout   = 100 * time.Millisecond
	gossipInterval = 50 * time.Millisecond
	streamTimeout  = time.Second
	suspicion      = 3
	suspicionMax   = 2

	rejoinInterval = 200 * time.Millisecond
	closeWait      = time.Second            // for what is queued
	leaveWait      = 300 * time.Millisecond // for the news of leaving
	leftWait       = 500 * time.Millisecond // for the last messages of one that left
	warnInterval   = 5 * time.Second
)

// Config describes a launcher to the others.
type Config struct {
	Name        string // unique among all launchers ever
	Coordinator bool   // this launcher is the one that others join
	// Endpoint is host:port of the coordinator, which listens there and nowhere
	// else. On the coordinator "" means this machine's usual address; there,
	// port 0 or none is a free port.
	Endpoint string
	Key      []byte // 16, 24 or 32 bytes
	Label    string // name of the job, at most 255 bytes
	Log      *slog.Logger
}

// Member is a launcher's place among the launchers.
type Member struct {
	cfg    Config
	list   *memberlist.Memberlist
	addr   net.IP
	inbox  chan rendezvous.Inbound
	done   chan struct{} // closed by Close
	wg     sync.WaitGroup
	alive  atomic.Int64 // members known to be alive
	gossip *memberlist.TransmitLimitedQueue

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	lifeLine net.Listener                      // on the coordinator
	vouch    atomic.Pointer[func(string) bool] // see Vouch
	alone    atomic.Bool                       // this host is cut off

	mu       sync.Mutex
	changed  *sync.Cond // something below has changed
	coord    string     // name of the coordinator, once it is known
	arrived  []rendezvous.Inbound
	outbound map[string]*line  // by destination; "" is the coordinator
	received map[string]uint64 // number of the last message, by sender
	toAck    []ack
	lives    map[string]*life     // by name
	answered map[string]time.Time // when a launcher has last answered a question
	closing  bool
}

// Open starts a member. The coordinator is ready at once; another launcher
// goes on looking for the coordinator until Close.
func Open(cfg Config) (*Member, error) {
	m := &Member{cfg: cfg, inbox: make(chan rendezvous.Inbound), done: make(chan struct{}), outbound: map[string]*line{}, received: map[string]uint64{},
		lives: map[string]*life{}, answered: map[string]time.Time{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.changed = sync.NewCond(&m.mu)
	m.gossip = &memberlist.TransmitLimitedQueue{NumNodes: func() int { return int(m.alive.Load()) }, RetransmitMult: 3}
	if cfg.Coordinator {
		m.coord = cfg.Name
	}
	var port int
	var err error
	if m.addr, port, err = listenAddr(cfg.Coordinator, cfg.Endpoint); err != nil {
		return nil, err
	}
	if cfg.Coordinator {
		if err := m.listenLife(); err != nil {
			return nil, err
		}
	}
	if m.list, err = memberlist.Create(m.configure(port)); err != nil {
		m.abandon()
		return nil, fmt.Errorf("listen for other launchers on %s: %w", net.JoinHostPort(m.addr.String(), strconv.Itoa(port)), err)
	}
	m.wg.Go(m.deliver)
	m.wg.Go(m.sendAcks)
	if !cfg.Coordinator {
		m.wg.Go(m.rejoin)
	}
	return m, nil
}

func (m *Member) configure(port int) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name, c.Label, c.SecretKey = m.cfg.Name, m.cfg.Label, m.cfg.Key
	c.BindAddr, c.BindPort = m.addr.String(), port
	c.AdvertiseAddr, c.AdvertisePort = m.addr.String(), port
	c.ProbeInterval, c.ProbeTimeout = probeInterval, probeTimeout
	c.GossipInterval, c.TCPTimeout = gossipInterval, streamTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicion, suspicionMax
	c.EnableCompression = false // LZW costs more time than it saves here
	c.Logger = slog.NewLogLogger(m.cfg.Log.Handler(), slog.LevelDebug)
	d := &delegate{m: m}
	c.Delegate, c.Events = d, d
	return c
}

// Addr is the IP address on which this launcher listens.
func (m *Member) Addr() string { return m.addr.String() }

// Port is the port on which this launcher listens.
func (m *Member) Port() int { return int(m.list.LocalNode().Port) }

// Inbox delivers messages and losses. It is never closed.
func (m *Member) Inbox() <-chan rendezvous.Inbound { return m.inbox }

// rejoin contacts the coordinator until it is a member here, again and again:
// the first packets may come before it listens, and partitions do not heal by
// themselves.
func (m *Member) rejoin() {
	started, warned := time.Now(), time.Now()
	for {
		if !m.coordinatorAlive() {
			_, err := m.list.Join([]string{m.cfg.Endpoint})
			if err != nil && time.Since(warned) > warnInterval {
				warned = time.Now()
				m.cfg.Log.Warn("the coordinator does not answer yet", "address", m.cfg.Endpoint, "waited", time.Since(started).Round(time.Second), "error", oneLine(err))
			}
		}
		select {
		case <-m.done:
			return
		case <-time.After(rejoinInterval):
		}
	}
}

// oneLine is an error of memberlist's Join, which makes a list of them.
func oneLine(err error) error {
	list, ok := errors.AsType[interface {
		error
		WrappedErrors() []error
	}](err)
	if !ok {
		return err
	}
	var all []string
	for _, e := range list.WrappedErrors() {
		all = append(all, e.Error())
	}
	return errors.New(strings.Join(all, "; "))
}

// abandon ends what an Open that fails has begun.
func (m *Member) abandon() {
	m.farewell()
	close(m.done)
	m.cancel()
	m.wg.Wait()
}

func (m *Member) coordinatorAlive() bool {
	m.mu.Lock()
	name := m.coord
	m.mu.Unlock()
	return name != "" && m.find(name) != nil
}

func (m *Member) find(name string) *memberlist.Node {
	for _, n := range m.list.Members() {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Close sends what is queued, as far as that is possible within a second,
// leaves, and ends the goroutines.
func (m *Member) Close() error {
	m.mu.Lock()
	m.closing = true
	m.changed.Broadcast()
	for deadline := time.Now().Add(closeWait); m.queued() && !m.alone.Load() && time.Now().Before(deadline); {
		m.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		m.mu.Lock()
	}
	m.mu.Unlock()
	m.farewell()
	close(m.done)
	m.cancel()
	m.mu.Lock()
	m.changed.Broadcast()
	m.mu.Unlock()
	if !m.alone.Load() {
		if err := m.list.Leave(leaveWait); err != nil {
			m.cfg.Log.Debug("leave the group of launchers", "error", err) // the others find out by themselves
		}
	}
	err := m.list.Shutdown()
	m.wg.Wait()
	return err
}
