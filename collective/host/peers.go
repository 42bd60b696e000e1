package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"ebtrain/collective/schedule"
)

// peers is how a rank reaches the others.
type peers struct {
	topo  topology
	grid  grid // in which the leaders stand
	log   *slog.Logger
	spins int     // loads before this rank yields or sleeps
	here  company // on this machine, as far as this one can know

	star  *star  // nil when this rank is alone on its host
	mesh  *mesh  // nil unless this rank leads one of several hosts
	arena *arena // nil when it is the only rank

	readers sync.WaitGroup // of connections
}

func newPeers(cfg Config) *peers {
	t := newTopology(cfg.Rank, cfg.Hosts)
	p := &peers{topo: t, grid: newGrid(t, cfg.width), log: cfg.Logger}
	if runtime.NumCPU() >= len(p.topo.locals()) {
		p.spins = spins
	}
	return p
}

// joined are the peers of a rank that is connected. Who is not leaves nothing open.
func joined(ctx context.Context, cfg Config) (*peers, error) {
	p := newPeers(cfg)
	if err := p.connect(ctx, cfg); err != nil {
		return nil, fmt.Errorf("host: rank %d of job %q: %w", cfg.Rank, cfg.Job, errors.Join(err, p.close()))
	}
	return p, nil
}

// connect connects this rank. What it has opened when it fails, close closes.
func (p *peers) connect(ctx context.Context, cfg Config) error {
	if p.topo.size == 1 {
		return nil
	}
	local, inet, err := p.listen(cfg)
	defer func() {
		for _, ln := range []net.Listener{local, inet} {
			if ln != nil {
				_ = ln.Close() // who was to come is there, or never will be
			}
		}
	}()
	if err != nil {
		return err
	}
	cards, err := swapCards(ctx, cfg, card{version, cfg.Job, hostsDigest(cfg.Hosts), address(local), address(inet), os.Getpid()})
	if err != nil {
		return err
	}
	p.here = companyOf(p.topo, cards)
	id := identity{rank: p.topo.rank, job: sha256.Sum256([]byte(cfg.Job)), key: cfg.Key}
	if len(p.topo.locals()) > 1 {
		if p.star, err = connectStar(ctx, id, p.topo, local, cards[p.topo.leader()].Local, p.log); err != nil {
			return err
		}
	}
	if !p.topo.oneHost() && p.topo.leads() {
		var addrs []string
		for _, ranks := range p.topo.hosts {
			addrs = append(addrs, inZone(cards[ranks[0]].Net, cfg.ListenIP))
		}
		if p.mesh, err = connectMesh(ctx, id, p.topo, inet, addrs, &p.grid, cfg, p.here, p.log); err != nil {
			return err
		}
	}
	return p.makeArena(ctx)
}

// company is who runs where a rank does.
type company struct {
	ranks   int  // with this one
	process bool // others are goroutines of the same process
}

// companyOf are those of this rank's host, and of others that are called at the same
// address.
func companyOf(t topology, cards []card) company {
	ip := func(host int) string {
		a, err := netip.ParseAddrPort(cards[t.hosts[host][0]].Net)
		if err != nil { // with one host none listens
			return ""
		}
		return a.Addr().String()
	}
	var c company
	for h, ranks := range t.hosts {
		if h != t.host && ip(h) != ip(t.host) {
			continue
		}
		c.ranks += len(ranks)
		for _, r := range ranks {
			c.process = c.process || r != t.rank && cards[r].Process == cards[t.rank].Process
		}
	}
	return c
}

// inZone is the address of another host as this one, which listens on own, calls
// it: one that reaches only the next wire needs a zone, the name of an interface,
// of which each host has its own.
func inZone(addr, own string) string {
	a, err := netip.ParseAddrPort(addr)
	if err != nil || !a.Addr().Is6() || !a.Addr().IsLinkLocalUnicast() {
		return addr
	}
	mine, err := netip.ParseAddr(own)
	if err != nil || mine.Zone() == "" {
		return addr
	}
	return netip.AddrPortFrom(a.Addr().WithZone(mine.Zone()), a.Port()).String()
}

func address(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

// listen opens what a leader listens on: for its host and for the others.
func (p *peers) listen(cfg Config) (local, inet net.Listener, err error) {
	if p.topo.leads() && len(p.topo.locals()) > 1 {
		if local, err = listenLocal(); err != nil {
			return nil, nil, err
		}
	}
	if p.topo.oneHost() || !p.topo.leads() {
		return local, nil, nil
	}
	if _, err := netip.ParseAddr(cfg.ListenIP); err != nil {
		return local, nil, fmt.Errorf("listen IP is %q, expected the address at which the other hosts reach this one", cfg.ListenIP)
	}
	if inet, err = listenInet(cfg.ListenIP, cfg.FirstPort, cfg.LastPort, p.topo.rank); err != nil {
		return local, nil, fmt.Errorf("listen for the other hosts: %w", err)
	}
	return local, inet, nil
}

// makeArena makes or receives the memory through which the host's ranks meet.
func (p *peers) makeArena(ctx context.Context) error {
	ranks, chunk := len(p.topo.locals()), schedule.LocalChunk
	if !p.topo.oneHost() {
		chunk = schedule.NetChunk(len(p.topo.hosts))
	}
	bytes := arenaBytes(ranks, chunk)
	var seg *segment
	var err error
	switch {
	case ranks == 1:
		seg, err = privateSegment(bytes)
	case p.topo.leads():
		seg, err = p.star.share("ebtrain collective", 1, bytes)
	default:
		seg, err = p.receiveArena(ctx, bytes)
	}
	if err != nil {
		return err
	}
	p.arena = newArena(seg, p.topo.local, ranks, chunk, p.spins, newCourtesy(p.here), p.log)
	return nil
}

// receiveArena waits for the memory that the leader of this host makes once it is
// connected with the others. A leader whose connection ends before has failed, and
// why is on its way.
func (p *peers) receiveArena(ctx context.Context, bytes int) (*segment, error) {
	stop := context.AfterFunc(ctx, func() { interrupt(p.star.conns[0]) })
	got, err := p.star.receive(0)
	if err != nil {
		pauseFor(ctx, patience)
	}
	if !stop() || ctx.Err() != nil { // ctx is over before it begins to interrupt
		if got.file != nil {
			_ = got.file.Close() // for nobody
		}
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("receive shared memory from rank %d: %w", p.topo.leader(), err)
	}
	if got.file == nil {
		return nil, fmt.Errorf("receive shared memory from rank %d: it aborted: %s", p.topo.leader(), got.record.text)
	}
	return takeSegment(got.file, 1, bytes)
}

// interrupt ends every read and write of c, now and later. That fails only
// where c is closed, which ends them as well.
func interrupt(c net.Conn) { _ = c.SetDeadline(time.Unix(1, 0)) }

// watch listens for trouble on all connections, in goroutines that end with
// close. Shared memory that comes when over is closed is for nobody.
func (p *peers) watch(a *alarm, over <-chan struct{}) {
	if p.star != nil {
		for l, c := range p.star.conns {
			if c != nil {
				p.readers.Go(func() { p.watchLocal(l, a, over) })
			}
		}
	}
	if p.mesh != nil {
		for _, o := range p.mesh.others {
			l := p.mesh.links[o]
			p.readers.Go(func() { p.mesh.carrier.fill(o) })
			p.readers.Go(func() { l.watch(a) })
		}
		p.readers.Go(func() { p.mesh.watchData(a, p.mesh.limit, over) })
	}
}

// watchLocal reads what local rank l says until it is gone.
func (p *peers) watchLocal(l int, a *alarm, over <-chan struct{}) {
	for {
		got, err := p.star.receive(l)
		switch {
		case err != nil:
			if p.arena.slot(l).left.Load() == 0 {
				a.raise(a.gone(p.topo.locals()[l], "its process has ended", err))
			}
			return
		case got.file != nil:
			select {
			case p.star.files <- got.file: // perhaps after the one before is taken
			case <-over:
				_ = got.file.Close()
			}
		default:
			a.heard(got.record)
		}
	}
}

// tell tells every rank that can be reached, once, why the group ends.
func (p *peers) tell(r record) {
	if p.arena != nil {
		p.arena.abort(r)
	}
	if p.star != nil {
		if err := p.star.tell(r); err != nil {
			p.log.Debug("message not sent", "message", "abort", "to", "this host", "err", err)
		}
	}
	if p.mesh != nil {
		p.mesh.tell(append([]byte{controlAbort}, r.frame()...), "abort", p.log)
		p.mesh.carrier.cut()
	}
}

// farewell tells the other ranks that this one leaves in order, and ends what
// fills its buffers.
func (p *peers) farewell() {
	if p.arena != nil {
		p.arena.leave(p.topo.local)
	}
	if p.mesh != nil {
		p.mesh.tell([]byte{controlFarewell}, "farewell", p.log)
		p.mesh.carrier.over()
	}
}

// close closes connections, waits for their readers and unmaps the arena.
func (p *peers) close() error {
	if p.star != nil {
		p.star.close()
	}
	if p.mesh != nil {
		p.mesh.close()
	}
	p.readers.Wait()
	if p.mesh != nil {
		_ = p.mesh.carrier.close() // all is sent
	}
	if p.star != nil {
		select {
		case f := <-p.star.files:
			_ = f.Close()
		default:
		}
	}
	if p.arena == nil {
		return nil
	}
	return p.arena.seg.unmap()
}
