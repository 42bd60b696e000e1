package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// addrs reads addresses separated by spaces.
func addrs(s string) (all []netip.Addr) {
	for _, f := range strings.Fields(s) {
		all = append(all, netip.MustParseAddr(f))
	}
	return all
}

func TestListenAddr(t *testing.T) {
	const lo = "127.0.0.1 127.0.1.1 ::1 "
	for _, c := range []struct {
		name, host, resolves, route, own string
		want, err                        string
	}{
		{"usual", "", "", "10.9.0.1", lo + "10.8.0.1 10.9.0.1", "10.9.0.1", ""},
		{"no route, an interface", "", "", "", lo + "fe80::1%eth0 fd00::1 10.9.0.1", "10.9.0.1", ""},
		{"only IPv6", "", "", "", lo + "fe80::1%eth0 fd00::1", "fd00::1", ""},
		{"only the next wire", "", "", "", lo + "fe80::1%eth0", "fe80::1%eth0", ""},
		{"only IPv6, with a route", "", "", "2001:db8:1::1", lo + "2001:db8:1::1", "2001:db8:1::1", ""},
		{"only the loopback", "", "", "", lo, "", "no network but its loopback"},
		{"a route by an address that is gone", "", "", "10.9.0.9", lo + "10.8.0.1", "10.8.0.1", ""},
		{"a route over the loopback", "", "", "127.0.0.1", lo + "10.8.0.1", "10.8.0.1", ""},
		{"IPv4 of the next wire only", "", "", "", lo + "169.254.0.5 fd00::1", "fd00::1", ""},
		{"one that cannot be used yet", "", "", "", lo + "fe80::2%eth0 fe80::1%eth0", "fe80::1%eth0", ""},
		{"Debian's own name", "node0", "127.0.1.1", "", lo + "10.9.0.1", "10.9.0.1", ""},
		{"Debian's own name, with a route", "node0", "127.0.1.1", "10.9.0.1", lo + "10.8.0.1 10.9.0.1", "10.9.0.1", ""},
		{"own name, both", "node0", "127.0.1.1 10.8.0.1", "10.9.0.1", lo + "10.8.0.1 10.9.0.1", "10.8.0.1", ""},
		{"own name and no network", "node0", "127.0.1.1", "", lo, "", "no network but its loopback"},
		{"the loopback is asked for", "127.0.0.1", "127.0.0.1", "10.9.0.1", lo + "10.9.0.1", "127.0.0.1", ""},
		{"by name", "localhost", "::1 127.0.0.1", "10.9.0.1", lo + "10.9.0.1", "::1", ""},
		{"another loopback", "127.0.1.1", "127.0.1.1", "10.9.0.1", lo + "10.9.0.1", "127.0.1.1", ""},
		{"with a zone", "fe80::1%eth0", "fe80::1%eth0", "", lo + "fe80::1%eth0", "fe80::1%eth0", ""},
		{"of another machine", "node1", "10.9.0.2", "", lo + "10.9.0.1", "", "not an address of this machine, which is node 0: node1 ([10.9.0.2])"},
		{"every one", "0.0.0.0", "0.0.0.0", "", lo + "10.9.0.1", "", "every one"},
		{"every one, IPv6", "::", "::", "", lo + "10.9.0.1", "", "every one"},
		{"tried by the kernel", "fe80::2%eth0", "fe80::2%eth0", "", lo + "fe80::2%eth0", "", "address fe80::2%eth0 of this machine: not usable yet"},
		{"unknown", "node9", "", "", lo + "10.9.0.1", "", "no such host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machine{
				lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
					if c.resolves == "" {
						return nil, &net.DNSError{Err: "no such host", Name: host}
					}
					return addrs(c.resolves), nil
				},
				local: func(a netip.Addr) bool {
					return slices.Contains(addrs(c.own), a) && a != netip.MustParseAddr("fe80::2%eth0")
				},
				route: func() []netip.Addr { return addrs(c.route) },
				own:   func() ([]netip.Addr, error) { return addrs(c.own), nil },
			}
			got, err := m.listenAddr(t.Context(), c.host)
			switch {
			case c.err == "" && (err != nil || got.String() != c.want):
				t.Errorf("got %v, %v, want %s", got, err, c.want)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v, %v, want an error with %q", got, err, c.err)
			}
			if waits := c.name == "unknown" || c.name == "tried by the kernel"; err != nil && passing(err) != waits {
				t.Errorf("%v: it is waited for: %v", err, !waits)
			}
		})
	}
}

// What this machine says of itself fits together.
func TestThisMachine(t *testing.T) {
	m := thisMachine()
	own, err := m.own()
	if err != nil || !slices.Contains(own, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("own addresses are %v, %v", own, err)
	}
	for _, a := range own {
		if !m.local(a) && !a.IsLinkLocalUnicast() { // some are still being tried by the kernel
			t.Errorf("cannot listen on %v", a)
		}
	}
	if m.local(netip.MustParseAddr("192.0.2.7")) {
		t.Error("an address for documentation is local")
	}
	for _, host := range []string{"127.0.0.1", "fe80::1%lo", "localhost"} {
		if all, err := m.lookup(t.Context(), host); err != nil || len(all) == 0 {
			t.Errorf("%s: %v, %v", host, all, err)
		}
	}
	if _, err := m.listenAddr(t.Context(), "192.0.2.7"); !errors.Is(err, errNotHere) {
		t.Errorf("got %v", err)
	}
}

// The loopback is this machine's own address only for who calls it so.
func TestIsOwn(t *testing.T) {
	for host, want := range map[string]bool{"127.0.0.1": true, "127.0.1.1": true, "localhost": true, "192.0.2.7": false, "no-such-host.invalid": false} {
		if got := IsOwn(t.Context(), host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	for host, want := range map[string]bool{"localhost": true, "::1": true, "127.0.1.1": true, "node0": false} {
		if meansItself(host) != want {
			t.Errorf("%s means the loopback: want %v", host, want)
		}
	}
}

func TestSplitEndpoint(t *testing.T) {
	for _, bad := range []string{"127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1", "a:b:c"} {
		if host, port, _, err := splitEndpoint(bad); err == nil {
			t.Errorf("%q was accepted as %s, %d", bad, host, port)
		}
	}
	for endpoint, want := range map[string]string{"[fe80::1%eth0]:7": "fe80::1%eth0 7 true", "node01": "node01 0 false", "": " 0 false", "fd00::1": "fd00::1 0 false", "[fd00::1]": "fd00::1 0 false", "node01:0": "node01 0 true"} {
		if host, port, told, err := splitEndpoint(endpoint); err != nil || fmt.Sprint(host, " ", port, " ", told) != want {
			t.Errorf("%s: got %s, %d, %v, %v", endpoint, host, port, told, err)
		}
	}
}
