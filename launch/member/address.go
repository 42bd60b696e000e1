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
		ip, err := sourceFor("192.0.2.1:9") // documentation address: nothing is sent
		if err != nil {
			ip = net.IPv4(127, 0, 0, 1) // no route to anywhere: this machine only
		}
		return ip, port, nil
	}
	ips, err := net.LookupIP(host)
	if err != nil {
		return nil, 0, fmt.Errorf("address of the coordinator: %w", err)
	}
	for _, ip := range ips {
		if isLocal(ip) {
			return ip, port, nil
		}
	}
	return nil, 0, fmt.Errorf("%s (%v) is not an address of this machine, which is node 0: give one that is, or start node 0 there", host, ips[0])
}

// sourceFor is this machine's address as seen from to. No packet is sent.
func sourceFor(to string) (net.IP, error) {
	c, err := net.Dial("udp", to)
	if err != nil {
		return nil, fmt.Errorf("no way to the coordinator at %s: %w", to, err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).IP, nil
}

// isLocal reports whether this machine can listen on ip.
func isLocal(ip net.IP) bool {
	l, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip})
	if err != nil {
		return false
	}
	return l.Close() == nil
}
