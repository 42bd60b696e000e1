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
	// nextPlace is how long a place may say nothing before the next one is tried
	// beside it: whatever listens there need not be a launcher.
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

// search connects to the coordinator at one of addrs and one of ports, one place
// after the other. A launcher of another job that answers at the only port is an
// error at once; among several, the next may be the right one.
func (m *Member) search(ctx context.Context, addrs []netip.Addr, ports []int) (*secure, error) {
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		at  netip.AddrPort
		c   *secure
		err error
	}
	var places []netip.AddrPort
	for _, a := range addrs {
		for _, p := range ports {
			places = append(places, netip.AddrPortFrom(a, uint16(p)))
		}
	}
	results := make(chan result, len(places))
	begun, ended := 0, 0
	defer func() { // who comes late is not needed
		cancel()
		for ; ended < begun; ended++ {
			if r := <-results; r.c != nil {
				_ = r.c.Close()
			}
		}
	}()
	failed := &searchError{ports: ports}
	for ended < len(places) {
		if begun < len(places) {
			at := places[begun]
			begun++
			m.wg.Go(func() {
				c, err := m.dial(ctx, at)
				results <- result{at, c, err}
			})
		}
		wait := nextPlace
		if begun == len(places) && len(places) > 1 {
			wait = dialLimit
		}
		patience := time.NewTimer(wait)
		select {
		case r := <-results:
			ended++
			if r.err == nil && !sameScope(r.c) {
				r.err = errors.Join(fmt.Errorf("an address like %s of this machine: %w", r.at.Addr(), errNotYet), r.c.Close())
			}
			if r.err == nil {
				m.at = r.at
				return r.c, nil
			}
			if foreign(r.err) && len(ports) == 1 {
				return nil, r.err
			}
			failed.add(r.at, r.err)
		case <-patience.C:
			if wait == dialLimit {
				failed.add(places[0], errNoAnswer)
				return nil, failed
			}
		}
		patience.Stop()
	}
	return nil, failed
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
