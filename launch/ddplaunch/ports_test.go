package main

import (
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// twoPorts is the first of two ports in a row that nobody listens on.
func twoPorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		a, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		first := a.Addr().(*net.TCPAddr).Port
		b, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+1))
		_ = a.Close()
		if err == nil {
			_ = b.Close()
			return first
		}
	}
	t.Fatal("no two free ports in a row")
	return 0
}

// A node that finds no port for its ranks says so to node 0, which waits for it or another.
func TestNodeWithoutAPort(t *testing.T) {
	t.Parallel()
	p := twoPorts(t)
	ports := fmt.Sprintf("%d:%d", p, p+1)
	first := start(t, secret, "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:0", "--port-range", ports, "RANKS", "gather")
	code, out := start(t, secret, "--nnodes", "2", "--join", first.endpoint(), "--port-range", ports, "RANKS", "gather").end()
	says := "no port of --port-range " + ports + " is free on 127.0.0.1 for the ranks ("
	if want(t, out, says, "): give a larger one\n"); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	first.awaits(") does not take part: " + says)
	if err := unix.Kill(first.cmd.Process.Pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _ := first.end(); code != 143 {
		t.Errorf("node 0 ended with %d, want 143", code)
	}
}
