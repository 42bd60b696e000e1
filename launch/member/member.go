// Package member carries messages between the launchers of a job, and tells of
// launchers that are gone. The coordinator listens; every other launcher has one
// connection to it, its link, which carries all messages between the two.
// hashicorp/memberlist, on the same port, tells who is dead or unreachable.
//
// Invariants:
//   - Everything is encrypted and authenticated (AES-GCM) with the job's key
//     and label: two jobs never merge, and a stranger gets nothing.
//   - There is no fixed port: the coordinator listens where it is told to, or
//     on a free port; every other launcher on a free port.
//   - Messages from one launcher to another arrive in order and once, also over
//     a connection that breaks and is made again. An abort goes in a packet too and
//     may arrive twice, or early.
//   - The loss of a launcher is told after what it has sent over its link.
//   - A launcher that is killed is known of at once, by the end of its link and of
//     its life line; one that falls silent is lost only if it does not answer when
//     asked and no data of its ranks arrive, and less soon if its host's kernel
//     acknowledges what is sent to it.
//
// A Member's methods may be called from any goroutine. Its goroutines end with
// Close, which waits for them.
package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// Timings. They were measured to detect a killed process among 8 and 16 within
// 0.9 to 1.7 s, with no false alarm on an overloaded CPU.
const (
	probeInterval  = 200 * time.Millisecond
	probeTimeout   = 100 * time.Millisecond
	gossipInterval = 50 * time.Millisecond
	streamTimeout  = time.Second
	suspicion      = 3
	suspicionMax   = 2

	fewLaunchers = 16
	maxSpread    = 10

	rejoinInterval = 200 * time.Millisecond
	closeWait      = time.Second            // for what is queued, since any of it was last received
	closeLimit     = 10 * time.Second       // and in all
	leaveWait      = 300 * time.Millisecond // for the news of leaving
	tellInterval   = 10 * time.Second       // between lines about strangers
)

// Config describes a launcher to the others.
type Config struct {
	Name        string // unique among all launchers ever
	Coordinator bool   // this launcher is the one that others join
	// Endpoint is host:port of the coordinator, which listens there and nowhere
	// else. Without a port, that is one of a few which come from the key and the
	// label. On the coordinator "" means this machine's usual address, and port 0
	// any free port.
	Endpoint string
	Ports    rendezvous.Ports // that may be listened on
	Key      []byte           // 16, 24 or 32 bytes
	Label    string           // name of the job, at most 255 bytes
	Nodes    int              // launchers expected; 0 if that is not known
	Wait     time.Duration    // how long to look for the coordinator, or its address
	Log      *slog.Logger
}

// Member is a launcher's place among the launchers.
type Member struct {
	cfg    Config
	secret secret
	port   *transport
	list   *memberlist.Memberlist
	ready  chan struct{} // closed when there is a list: others may connect before
	inbox  chan rendezvous.Inbound
	ctx    context.Context // until Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	alive  atomic.Int64 // members known to be alive
	gossip *memberlist.TransmitLimitedQueue
	at     netip.AddrPort                    // where the coordinator is, on another launcher
	vouch  atomic.Pointer[func(string) bool] // see Vouch
	alone  atomic.Bool                       // this host was found to be cut off, and nobody has been heard since
	told   atomic.Int64                      // the coordinator's time between pulses, once it has told it
	formed atomic.Int32                      // launchers of the job, see Formed

	mu       sync.Mutex
	changed  *sync.Cond // something below has changed
	coord    string     // name of the coordinator
	arrived  []rendezvous.Inbound
	links    map[string]*link            // by the other launcher's name
	lost     map[string]bool             // has been told of, and has not come back
	lives    map[string]*life            // by name
	answered map[string]time.Time        // when a launcher has last answered a question
	parted   time.Time                   // when one last left, by its own word
	places   map[string]*memberlist.Node // where a launcher was last known to be; nothing in them changes
	foreign  strangers
	closing  bool
}

// Open starts a member. It returns when the coordinator listens or, on another
// launcher, when that is linked to the coordinator. It looks for the coordinator
// until cfg.Wait has passed or ctx ends; a coordinator with another key or label
// is an error at once.
func Open(ctx context.Context, cfg Config) (*Member, error) {
	m := &Member{cfg: cfg, ready: make(chan struct{}), secret: secret{cfg.Key, cfg.Label}, inbox: make(chan rendezvous.Inbound), links: map[string]*link{}, lost: map[string]bool{}, lives: map[string]*life{}, answered: map[string]time.Time{}, places: map[string]*memberlist.Node{}}
	m.changed = sync.NewCond(&m.mu)
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.gossip = &memberlist.TransmitLimitedQueue{NumNodes: func() int { return int(m.alive.Load()) }, RetransmitMult: 3}
	m.foreign.log = cfg.Log
	start := m.join
	if cfg.Coordinator {
		start = m.coordinate
	}
	if err := start(ctx); err != nil {
		m.cancel()
		m.wg.Wait()
		return nil, err
	}
	m.wg.Go(m.deliver)
	return m, nil
}

// coordinate listens where others join.
func (m *Member) coordinate(ctx context.Context) error {
	m.coord = m.cfg.Name
	host, ports, err := m.where()
	if err != nil {
		return err
	}
	var addr netip.Addr
	err = m.patiently(ctx, func(ctx context.Context) (err error) {
		addr, err = thisMachine().listenAddr(ctx, host)
		return err
	}, passing)
	if err != nil {
		return err
	}
	err = m.listen(addr, ports)
	if len(ports) == 1 && errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: another job or program has that port: give another one, or none", err)
	}
	return err
}

// listen opens this launcher's port, the first of ports that is free, and its list
// of members.
func (m *Member) listen(addr netip.Addr, ports []int) (err error) {
	m.port, err = listen(addr, ports, m.cfg.Nodes, func(c net.Conn, leave func() bool) { m.wg.Go(func() { m.answer(c, leave) }) })
	switch {
	case err != nil && len(ports) > 1:
		return fmt.Errorf("listen for other launchers on %s: no port of %s is free: %w", addr, few(ports), err)
	case err != nil:
		return fmt.Errorf("listen for other launchers on %s: %w", net.JoinHostPort(addr.String(), strconv.Itoa(ports[0])), err)
	}
	if m.list, err = memberlist.Create(m.configure()); err != nil {
		m.cancel() // who waits for ready
		return errors.Join(fmt.Errorf("list of launchers: %w", err), m.port.Shutdown())
	}
	close(m.ready)
	return nil
}

func (m *Member) configure() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name, c.Label, c.SecretKey, c.Transport = m.cfg.Name, m.cfg.Label, m.cfg.Key, m.port
	c.ProbeInterval, c.ProbeTimeout = m.pace(probeInterval), probeTimeout
	c.GossipInterval, c.TCPTimeout = m.pace(gossipInterval), streamTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicion, suspicionMax
	c.EnableCompression = false // LZW costs more time than it saves here
	c.Logger = slog.NewLogLogger(m.cfg.Log.Handler(), slog.LevelDebug)
	d := &delegate{m: m}
	c.Delegate, c.Events = d, d
	return c
}

// pace is a time between packets of gossip if there are many launchers: then the
// hosts together, and with them each that many of them share, have no more to do than
// a few dozen have. Who is lost is known by life lines, soon.
func (m *Member) pace(d time.Duration) time.Duration {
	return d * time.Duration(min(max(1, m.cfg.Nodes/fewLaunchers), maxSpread))
}

// Addr is the IP address on which this launcher listens, with its zone.
func (m *Member) Addr() string { return m.port.addr.Addr().String() }

// Port is the port on which this launcher listens.
func (m *Member) Port() int { return int(m.port.addr.Port()) }

// Inbox delivers messages and losses. It is never closed.
func (m *Member) Inbox() <-chan rendezvous.Inbound { return m.inbox }

// Send queues msg for the launcher called to, "" for the coordinator, and
// never blocks. A short abort goes in a packet as well, once and straight there, in case
// the link stands still.
func (m *Member) Send(to string, msg rendezvous.Message) {
	m.mu.Lock()
	closing := m.closing
	if to == "" {
		to = m.coord
	}
	m.mu.Unlock()
	if closing {
		return
	}
	if err := m.link(to).put(msg); err != nil {
		m.cfg.Log.Error("a message cannot be sent", "kind", msg.Kind, "error", err)
		return
	}
	if p, err := m.packet(msg); err == nil && msg.Kind == rendezvous.KindAbort && len(p.Msg) <= maxAbort {
		m.send(to, p)
	}
}

// link is the link to the launcher called name.
func (m *Member) link(name string) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[name]
	if l == nil {
		l = newLink(name)
		m.links[name] = l
	}
	return l
}

// push queues in for the inbox.
func (m *Member) push(in rendezvous.Inbound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrived = append(m.arrived, in)
	m.changed.Broadcast()
}

// lose tells of the loss of a launcher, once.
func (m *Member) lose(in rendezvous.Inbound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost[in.From] {
		return
	}
	m.lost[in.From] = true
	in.Lost, in.Coordinator = true, in.From == m.coord
	m.arrived = append(m.arrived, in)
	m.changed.Broadcast()
}

// deliver moves what has arrived to the inbox, in order.
func (m *Member) deliver() {
	for {
		m.mu.Lock()
		for len(m.arrived) == 0 && m.ctx.Err() == nil {
			m.changed.Wait()
		}
		if m.ctx.Err() != nil {
			m.mu.Unlock()
			return
		}
		in := m.arrived[0]
		m.arrived = m.arrived[1:]
		m.mu.Unlock()
		select {
		case m.inbox <- in:
		case <-m.ctx.Done():
			return
		}
	}
}

// Close sends what is queued, until for a second nothing of it is received, leaves, and
// ends the goroutines.
func (m *Member) Close() error {
	m.mu.Lock()
	m.closing = true
	var live []*link // who is lost hears nothing
	for name, l := range m.links {
		if !m.lost[name] {
			live = append(live, l)
		}
	}
	m.mu.Unlock()
	m.settle(closeWait, live, (*link).pending)
	for _, l := range live {
		l.leave()
	}
	m.settle(leaveWait, live, (*link).connected)
	m.farewell()
	if !m.alone.Load() {
		if b, err := json.Marshal(packet{From: m.cfg.Name, Leaves: true}); err == nil {
			m.gossip.QueueBroadcast(broadcast(b)) // goes with what memberlist says of it
		}
		if err := m.list.Leave(leaveWait); err != nil {
			m.cfg.Log.Debug("leave the group of launchers", "error", err) // the others find out by themselves
		}
	}
	return m.end()
}

// end closes what listens and waits for all goroutines.
func (m *Member) end() error {
	m.cancel()
	m.mu.Lock()
	m.closing = true // nobody starts another goroutine
	m.changed.Broadcast()
	all := make([]*link, 0, len(m.links))
	for _, l := range m.links {
		all = append(all, l)
	}
	for _, l := range m.lives {
		if l.conn != nil {
			_ = l.conn.Close()
		}
	}
	m.mu.Unlock()
	for _, l := range all {
		l.close()
	}
	err := m.list.Shutdown()
	m.wg.Wait()
	m.foreign.tell(true)
	return err
}

// settle waits until busy is true of no link, as long as within d of the last there is
// another of which it no longer is. Among hundreds of launchers that share a machine, and
// all end at once, most take longer than d to take what they are told: who is left by
// then would find node 0 gone, and blame it. While this process stands still it sees
// nobody take anything: of that time little counts. A host that is cut off waits for nothing.
func (m *Member) settle(d time.Duration, links []*link, busy func(*link) bool) {
	var all, quiet time.Duration // waited in all, and since the last
	for begun := time.Now(); !m.alone.Load() && quiet < d && all < closeLimit; {
		left := links[:0:0]
		for _, l := range links {
			if busy(l) {
				left = append(left, l)
			}
		}
		if len(left) < len(links) {
			quiet = 0
		}
		if links = left; len(links) == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
		now := time.Now()
		turn := min(now.Sub(begun), lateness)
		all, quiet, begun = all+turn, quiet+turn, now
	}
}
