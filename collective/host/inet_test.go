package host

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"ebtrain/collective/congestion"
)

// TestListenInet has as many listeners as there are ports, and one more.
func TestListenInet(t *testing.T) {
	any1, err := listenInet("127.0.0.1", 0, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	first := any1.Addr().(*net.TCPAddr).Port
	ln, err := listenInet("127.0.0.1", first, first, 5)
	if err == nil || !strings.Contains(err.Error(), "no port from ") {
		t.Errorf("got %v, %v", ln, err)
	}
	if err := any1.Close(); err != nil {
		t.Fatal(err)
	}
	ln, err = listenInet("127.0.0.1", first, first, 5)
	if err != nil || ln.Addr().(*net.TCPAddr).Port != first {
		t.Fatalf("got %v, %v, want port %d", ln, err, first)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	for _, ports := range [][2]int{{-1, 5}, {7, 6}, {0, 9}, {1, 70000}} {
		c := Config{Size: 1, FirstPort: ports[0], LastPort: ports[1]}
		if err := c.validate(); err == nil {
			t.Errorf("ports %v were accepted", ports)
		}
	}
}

// TestConnectionsAreNotPaced by BBR, which some machines prefer.
func TestConnectionsAreNotPaced(t *testing.T) {
	ln, err := listenInet("127.0.0.1", 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	ids := []identity{{rank: 0, key: []byte("key")}, {rank: 1, key: []byte("key")}}
	ended := make(chan error, 1)
	var far net.Conn
	go func() {
		got, err := ids[0].accept(t.Context(), ln, []call{{forData, 1}}, slog.New(slog.DiscardHandler))
		far = got[call{forData, 1}]
		ended <- err
	}()
	near, err := ids[1].dial(t.Context(), "tcp", ln.Addr().String(), call{forData, 0})
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = near.Close() }()
	defer func() { _ = far.Close() }()
	for end, c := range map[string]net.Conn{"dialed": near, "accepted": far} {
		if name, err := congestion.Paced(c.(syscall.Conn)); name != "" || err != nil {
			t.Errorf("the %s end is paced by %q, %v", end, name, err)
		}
	}
}
