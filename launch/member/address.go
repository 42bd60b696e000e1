package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// errNotHere is an address at which this machine, which is node 0, cannot be
// reached, whatever is waited for.
var errNotHere = errors.New("not an address of this machine")

// errNotYet is an address of this machine that cannot be used yet: the kernel
// first asks the network whether anybody else has it.
var errNotYet = errors.New("not usable yet")

// lookup is how names are resolved.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// resolve asks the system. An address is its own, with its zone.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range all {
		all[i] = all[i].Unmap()
	}
	return all, err
}

// splitEndpoint takes host:port apart, or a host alone, for which told is false;
// an address of IPv6 may then stand without brackets.
func splitEndpoint(endpoint string) (host string, port int, told bool, err error) {
	bare := endpoint
	if strings.HasSuffix(endpoint, "]") {
		bare = strings.TrimPrefix(endpoint[:len(endpoint)-1], "[")
	}
	if _, err := netip.ParseAddr(bare); !strings.HasPrefix(bare, "[") && err == nil || !strings.Contains(endpoint, ":") {
		return bare, 0, false, nil
	}
	host, portText, err := net.SplitHostPort(endpoint)
	if err != nil {
		return "", 0, false, fmt.Errorf("address of the coordinator: %w", err)
	}
	if port, err = strconv.Atoi(portText); err != nil || port < 0 || port > 65535 {
		return "", 0, false, fmt.Errorf("address of the coordinator %q: the port is not a number from 0 to 65535", endpoint)
	}
	return host, port, true, nil
}

// machine is what a launcher must know of where it runs.
type machine struct {
	lookup lookup
	local  func(netip.Addr) bool        // this machine can listen there
	route  func() []netip.Addr          // its addresses on the ways to other networks
	own    func() ([]netip.Addr, error) // all its addresses, of interfaces that are up
}

func thisMachine() machine { return machine{resolve, isLocal, routed, interfaces} }

// listenAddr is the one address of this machine, which is node 0, at which the
// others reach it. host is what the user calls it, "" if nothing; the loopback is
// taken only if it is asked for. Some errors may pass, as that of a name that does
// not resolve yet; see passing.
func (m machine) listenAddr(ctx context.Context, host string) (netip.Addr, error) {
	if host == "" {
		return m.usual()
	}
	all, err := m.lookup(ctx, host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("address of the coordinator: %w", err)
	}
	loopback := false
	for _, a := range all {
		switch {
		case a.IsUnspecified():
			return a, fmt.Errorf("%w: %s is %s, every one: give the one at which the other nodes reach it", errNotHere, host, a)
		case a.IsLoopback() && !meansItself(host):
			loopback = true
		case m.local(a):
			return a, nil
		}
	}
	if loopback { // as 127.0.1.1
		return m.usual()
	}
	own, err := m.own()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, a := range all {
		if slices.Contains(own, a) {
			return a, fmt.Errorf("address %s of this machine: %w", a, errNotYet)
		}
	}
	return netip.Addr{}, fmt.Errorf("%w, which is node 0: %s (%v): give one that is, or start node 0 there", errNotHere, host, all)
}

// meansItself says that who calls a machine so means the loopback, if that is what it is:
// some systems give their own name such an address, too.
func meansItself(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

// usual is the address by which this machine reaches other networks or, if it has
// no way to any, one of its interfaces: global ones before those that reach only
// the next wire, IPv4 before IPv6.
func (m machine) usual() (netip.Addr, error) {
	for _, a := range m.route() {
		if !a.IsLoopback() && m.local(a) {
			return a, nil
		}
	}
	all, err := m.own()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, fits := range []func(netip.Addr) bool{
		func(a netip.Addr) bool { return a.Is4() && !a.IsLinkLocalUnicast() },
		func(a netip.Addr) bool { return a.Is6() && !a.IsLinkLocalUnicast() },
		func(a netip.Addr) bool { return a.IsLinkLocalUnicast() },
	} {
		for _, a := range all {
			if fits(a) && !a.IsLoopback() && !a.IsMulticast() && m.local(a) {
				return a, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("this machine has no network but its loopback: connect it or, if all nodes are on it, give the address 127.0.0.1")
}

// routed asks for the ways to addresses that nobody has. Nothing is sent.
func routed() []netip.Addr {
	var all []netip.Addr
	for _, documentation := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		c, err := net.Dial("udp", documentation)
		if err != nil {
			continue // no way
		}
		all = append(all, c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap())
		_ = c.Close() // nothing was sent
	}
	return all
}

// interfaces are the addresses of all interfaces that are up, with zones.
func interfaces() ([]netip.Addr, error) {
	list, err := addresses()
	var all []netip.Addr
	for _, a := range list {
		all = append(all, a.addr)
	}
	return all, err
}

// isLocal reports whether this machine can listen on ip.
func isLocal(ip netip.Addr) bool {
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
