package member

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"ebtrain/launch/rendezvous"
)

const (
	candidateCount = 8
	// nextPlace is how long a port may say nothing, at all addresses, before the next one is
	// tried beside it: whatever listens there need not be a launcher.
	nextPlace = 200 * time.Millisecond
)

// usualPorts are those that candidates are taken from: below what Linux gives to
// connections that go out, and above what services are known by.
var usualPorts = rendezvous.Ports{First: 16384, Last: 32767}

// candidates are the ports at which node 0 of a job listens if it is told none: the
// first that is free. They come from the key and the name of the job, so whoever
// knows both looks for it there, and jobs of one host seldom meet.
func candidates(s secret, allowed rendezvous.Ports) []int {
	if allowed.Any() {
		allowed = usualPorts
	}
	want := min(candidateCount, allowed.Count())
	var ports []int
	for i := uint32(0); len(ports) < want; i++ {
		m := hmac.New(sha256.New, s.key)
		_, _ = fmt.Fprintf(m, "ebtrain port %d: %s", i, s.label)
		port := allowed.First + int(binary.BigEndian.Uint64(m.Sum(nil))%uint64(allowed.Count()))
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// search connects to the coordinator at one of addrs, at least one, and one of ports,
// one place after the other. A launcher of another job that answers at the only port is an
// error at once; among several, the next may be the right one.
func (m *Member) search(ctx context.Context, addrs []netip.Addr, ports []int) (*secure, error) {
	s := newDials(m, addrs, ports)
	ctx, cancel := context.WithCancel(ctx)
	defer s.drop()
	defer cancel()
	failed := &searchError{ports: ports}
	for s.ended < len(s.places) {
		if s.begun < len(s.places) {
			s.begin(ctx)
		}
		wait := nextPlace / time.Duration(len(addrs)) // of which any may lead nowhere
		if s.begun == len(s.places) && len(s.places) > 1 {
			wait = dialLimit
		}
		d, answered := s.next(wait)
		switch {
		case !answered && wait == dialLimit:
			failed.add(s.places[0], errNoAnswer)
			return nil, failed
		case !answered:
		case d.err == nil:
			m.at = d.at
			return d.c, nil
		case foreign(d.err) && len(ports) == 1:
			return nil, d.err
		default:
			failed.add(d.at, d.err)
		}
	}
	return nil, failed
}

// dials are connections that are tried at places, in their order.
type dials struct {
	m            *Member
	places       []netip.AddrPort
	begun, ended int // how many of the places
	results      chan dialed
}

// dialed is what came of a place.
type dialed struct {
	at  netip.AddrPort
	c   *secure
	err error
}

func newDials(m *Member, addrs []netip.Addr, ports []int) *dials {
	s := &dials{m: m}
	for _, p := range ports { // node 0 has the first of them, as a rule, at one of its addresses
		for _, a := range addrs {
			s.places = append(s.places, netip.AddrPortFrom(a, uint16(p)))
		}
	}
	s.results = make(chan dialed, len(s.places))
	return s
}

// begin tries the next place.
func (s *dials) begin(ctx context.Context) {
	at := s.places[s.begun]
	s.begun++
	s.m.wg.Go(func() {
		c, err := s.m.dial(ctx, at)
		s.results <- dialed{at, c, err}
	})
}

// next waits for what comes of one place; false if nothing does in time. A connection of
// another scope is an error.
func (s *dials) next(wait time.Duration) (d dialed, answered bool) {
	patience := time.NewTimer(wait)
	defer patience.Stop()
	select {
	case d = <-s.results:
	case <-patience.C:
		return dialed{}, false
	}
	s.ended++
	if d.err == nil && !sameScope(d.c) {
		d.err = errors.Join(fmt.Errorf("an address like %s of this machine: %w", d.at.Addr(), errNotYet), d.c.Close())
	}
	return d, true
}

// drop closes the connections that come too late to be needed.
func (s *dials) drop() {
	for ; s.ended < s.begun; s.ended++ {
		if d := <-s.results; d.c != nil {
			_ = d.c.Close()
		}
	}
}

// errNoAnswer is that whoever took a connection has said nothing.
var errNoAnswer = errors.New("what listens there says nothing")

// searchError is that the coordinator is at none of several places.
type searchError struct {
	ports []int
	errs  []error
	texts []string // what is wrong at each, without repetitions
}

func (e *searchError) add(at netip.AddrPort, err error) {
	e.errs = append(e.errs, err)
	text := err.Error()
	if errno, ok := errors.AsType[syscall.Errno](err); ok && len(e.ports) > 1 {
		text = at.Addr().String() + ": " + errno.Error() // at one port as at the other
	} else if foreign(err) {
		text = fmt.Sprintf("a launcher of another job answers at %s: %v", at, err)
	}
	if !slices.Contains(e.texts, text) {
		e.texts = append(e.texts, text)
	}
}

func (e *searchError) Error() string {
	text := strings.Join(e.texts, "; ")
	if len(e.ports) > 1 {
		text += fmt.Sprintf("; ports %s were tried, which come from the key", numbers(e.ports))
	}
	return text
}

func (e *searchError) Unwrap() []error { return e.errs }

func numbers(ports []int) string {
	var all []string
	for _, p := range ports {
		all = append(all, fmt.Sprint(p))
	}
	return strings.Join(all, ", ")
}

// Host is the host of an endpoint, and whether it tells a port; see Config.
func Host(endpoint string) (host string, told bool, err error) {
	host, _, told, err = splitEndpoint(endpoint)
	return host, told, err
}

// lookUpLimit is how long IsOwn may take.
const lookUpLimit = 2 * time.Second

// IsOwn reports whether host is, or names, an address at which this machine can be
// reached; the loopback must be meant.
func IsOwn(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, lookUpLimit)
	defer cancel()
	all, err := resolve(ctx, host)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(a netip.Addr) bool { return (!a.IsLoopback() || meansItself(host)) && isLocal(a) })
}

// where is what Config.Endpoint says: a host, "" for this one's usual address, and
// the ports to try.
func (m *Member) where() (host string, ports []int, err error) {
	host, port, told, err := splitEndpoint(m.cfg.Endpoint)
	switch {
	case err != nil:
		return "", nil, err
	case !told:
		return host, candidates(m.secret, m.cfg.Ports), nil
	case port == 0 && !m.cfg.Coordinator:
		return "", nil, fmt.Errorf("address of node 0 %q: port 0 is any port, which node 0 alone may ask for: give the one that it listens on, or none", m.cfg.Endpoint)
	case port == 0:
		return host, m.anyPort(), nil
	case !m.cfg.Ports.Any() && (port < m.cfg.Ports.First || port > m.cfg.Ports.Last):
		return "", nil, fmt.Errorf("port %d of node 0 is not in --port-range %v", port, m.cfg.Ports)
	}
	return host, []int{port}, nil
}

// anyPort is the ports to listen on if it does not matter which, in an order of
// this launcher's own: others of its host look for one, too.
func (m *Member) anyPort() []int {
	sum := sha256.Sum256([]byte(m.cfg.Name))
	return m.cfg.Ports.From(int(binary.BigEndian.Uint32(sum[:]) >> 1))
}

// NetworkAddr is this machine's address on a network, which is the name of an
// interface or a prefix such as 10.1.0.0/16: global ones before those that reach
// only the next wire, IPv4 before IPv6.
func NetworkAddr(network string) (netip.Addr, error) {
	list, err := addresses()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("addresses of this machine: %w", err)
	}
	prefix, err := netip.ParsePrefix(network)
	within := func(a ifaceAddr) bool { return a.name == network }
	if err == nil {
		within = func(a ifaceAddr) bool { return prefix.Contains(a.addr.WithZone("")) }
	}
	var fitting []netip.Addr
	var has []string
	for _, a := range list {
		has = append(has, a.name+" "+a.addr.WithZone("").String())
		if within(a) && isLocal(a.addr) {
			fitting = append(fitting, a.addr)
		}
	}
	if len(fitting) == 0 {
		return netip.Addr{}, fmt.Errorf("%q is no interface of this machine that is up, nor a network that it has an address in (it has %s)", network, strings.Join(has, ", "))
	}
	return preferred(fitting), nil
}

// preferred is the first of those that NetworkAddr puts before others.
func preferred(all []netip.Addr) netip.Addr {
	return slices.MinFunc(all, func(a, b netip.Addr) int { return rank(a) - rank(b) })
}

// rank puts addresses in the order of NetworkAddr.
func rank(a netip.Addr) int {
	switch {
	case a.IsLinkLocalUnicast():
		return 2
	case a.Is6():
		return 1
	}
	return 0
}

type ifaceAddr struct {
	name string // of the interface
	addr netip.Addr
}

// addresses are those of all interfaces that are up, with zones.
func addresses() ([]ifaceAddr, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var all []ifaceAddr
	for _, i := range list {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue // it went away meanwhile
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue // not an IP
			}
			ip := p.Addr().Unmap()
			if ip.Is6() && ip.IsLinkLocalUnicast() {
				ip = ip.WithZone(i.Name)
			}
			all = append(all, ifaceAddr{i.Name, ip})
		}
	}
	return all, nil
}

// few is ports in words: all, or the first and the last.
func few(ports []int) string {
	if len(ports) <= candidateCount {
		return numbers(ports)
	}
	return fmt.Sprintf("%d to %d", slices.Min(ports), slices.Max(ports))
}
