package member

import (
	"fmt"
	"net"
	"strconv"
)

// listenAddr decides where to listen: on one address only, the one by which
// this launcher and the others reach each other, IPv4 or IPv6.
func listenAddr(coordinator bool, endpoint string) (net.IP, int, error) {
	var host, portText string
	port := 0
	if endpoint != "" {
		var err error
		if host, portText, err = net.SplitHostPort(endpoint); err != nil {
			return nil, 0, fmt.Errorf("address of the coordinator: %w", err)
		}
		if port, err = strconv.Atoi(portText); err != nil {
			return nil, 0, fmt.Errorf("address of the coordinator %q: the port is not a number", endpoint)
		}
	}
	switch {
	case !coordinator:
		ip, err := sourceFor(endpoint)
		return ip, 0, err
	case host == "":
		return usualAddr(), port, nil
	}
	ip, err := ownAddr(host)
	return ip, port, err
}

// usualAddr is the address by which this machine reaches other networks. One
// that has no way to any serves only itself.
func usualAddr() net.IP {
	for _, documentation := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // nothing is sent
		if ip, err := sourceFor(documentation); err == nil {
			return ip
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// ownAddr is the address of this machine that host means, a name or an IP. A
// name that some systems give themselves on the loopback (127.0.1.1) is looked
// up for an address that others reach.
func ownAddr(host string) (net.IP, error) {
	ips, err := net.LookupIP(host)
	if err != nil {
		return nil, fmt.Errorf("address of the coordinator: %w", err)
	}
	loopback := host == "localhost" || net.ParseIP(host) != nil // it is meant
	for _, ip := range ips {
		switch {
		case ip.IsUnspecified():
			return nil, fmt.Errorf("%s is every address of this machine: give the one at which the other nodes reach it", host)
		case isLocal(ip) && (loopback || !ip.IsLoopback()):
			return ip, nil
		}
	}
	if ips[0].IsLoopback() {
		return nil, fmt.Errorf("%s is %v on this machine, where the other nodes cannot reach it: give an address of its network", host, ips[0])
	}
	return nil, fmt.Errorf("%s (%v) is not an address of this machine, which is node 0: give one that is, or start node 0 there", host, ips[0])
}

// sourceFor is this machine's address as seen from to. No packet is sent.
func sourceFor(to string) (net.IP, error) {
	c, err := net.Dial("udp", to)
	if err != nil {
		return nil, fmt.Errorf("no way to the coordinator at %s: %w", to, err)
	}
	return c.LocalAddr().(*net.UDPAddr).IP, c.Close()
}

// isLocal reports whether this machine can listen on ip.
func isLocal(ip net.IP) bool {
	l, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip})
	if err != nil {
		return false
	}
	return l.Close() == nil
}
