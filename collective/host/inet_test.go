package host

import (
	"net"
	"strings"
	"testing"
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
