package netns

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Variables that make this test binary one end of a connection: the address, and
// which end.
const (
	serveVar = "NETNS_TEST_SERVE"
	sendVar  = "NETNS_TEST_SEND"
)

const sent = 1 << 20 // bytes

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(serveVar) != "":
		err = serve(os.Getenv(serveVar))
	case os.Getenv(sendVar) != "":
		err = send(os.Getenv(sendVar))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers everybody who has sent everything with a byte, until it is killed.
func serve(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("listens")
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, conn, sent); err == nil {
			_, _ = conn.Write([]byte{1}) // who sends says whether it has come
		}
		_ = conn.Close()
	}
}

func send(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return err
	}
	if _, err := conn.Write(make([]byte, sent)); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return errors.Join(err, conn.Close())
}

// end is the command that is one end of a connection, on h.
func end(t *testing.T, h *Host, variable, addr string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := h.Enter("/", self)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), variable+"="+addr)
	return cmd
}

// hosts are three, the last of which has a clock of its own.
func hosts(t *testing.T) *Network {
	t.Helper()
	if err := Possible(); err != nil {
		t.Skip(err)
	}
	n, err := New(3, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHosts demands that hosts are apart: networks, memory, names, the last one's
// clock; and that Close tells of a process that has stayed.
func TestHosts(t *testing.T) {
	n := hosts(t)
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	networks := map[string]bool{own: true}
	for i, h := range n.Hosts {
		out, err := h.Ask("hostname; ls -A /dev/shm; touch /dev/shm/mine; readlink /proc/self/ns/net; cut -d. -f1 /proc/uptime")
		if err != nil {
			t.Fatal(err)
		}
		var inode string
		var up int64
		if _, err := fmt.Sscanf(out, "node"+fmt.Sprint(i)+"\n%s\n%d", &inode, &up); err != nil {
			t.Fatalf("host %d says %q: %v", i, out, err)
		}
		networks[inode] = true
		if late := up > 1000*3600; late != (i == 2) {
			t.Errorf("%s has been up for %d s", h.Name, up)
		}
	}
	if len(networks) != 4 {
		t.Errorf("networks %v: want one for each host, and this process's", networks)
	}
	args := n.Hosts[1].Enter("/", "sleep", "60")
	stays := exec.Command(args[0], args[1:]...)
	if err := stays.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stays.Process.Kill(); _ = stays.Wait() }()
	for begun := time.Now(); n.alive() == nil || len(n.alive()) < 5; time.Sleep(time.Millisecond) { // switch, three hosts, and it
		if time.Since(begun) > time.Minute {
			t.Fatalf("it is not seen: %v", n.alive())
		}
	}
	if err := n.Close(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d keeps a network of a host", stays.Process.Pid)) || strings.Count(err.Error(), "keeps") != 1 {
		t.Errorf("closing beside a process that stays: %v", err)
	}
}

// TestLinks sends a megabyte: over a link, one that is cut, one that is limited, and
// one that no longer is.
func TestLinks(t *testing.T) {
	n := hosts(t)
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	addr := net.JoinHostPort(n.Hosts[1].Addr, "7000")
	server := end(t, n.Hosts[1], serveVar, addr)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	if _, err := io.ReadFull(out, make([]byte, len("listens\n"))); err != nil {
		t.Fatal(err)
	}
	passes := func() time.Duration {
		t.Helper()
		begun := time.Now()
		if out, err := end(t, n.Hosts[0], sendVar, addr).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return time.Since(begun)
	}
	passes()
	if err := n.Plug(1, false); err != nil {
		t.Fatal(err)
	}
	if out, err := end(t, n.Hosts[0], sendVar, addr).CombinedOutput(); err == nil || !strings.Contains(string(out), "dial tcp") {
		t.Errorf("a host that is cut off was reached: %v: %s", err, out)
	}
	if err := errors.Join(n.Plug(1, true), n.Limit(0.004)); err != nil {
		t.Fatal(err)
	}
	// The two buckets let a burst pass each, nothing else is faster than 0.5 MB/s.
	least := time.Duration(float64(sent-2*leastBurst) / 0.5e6 * float64(time.Second))
	if slow := passes(); slow < least {
		t.Errorf("%d bytes passed in %v, want at least %v at 4 Mbit/s", sent, slow, least)
	}
	if err := n.Limit(0); err != nil {
		t.Fatal(err)
	}
	// Some time or other this machine stands still for less long.
	for tries := 1; passes() >= least; tries++ {
		if tries == 10 {
			t.Fatalf("once there was no limit again, it took longer than %v %d times", least, tries)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, n := range []int{0, 251} {
		if _, err := New(n, 0); err == nil || !strings.Contains(err.Error(), "expected 1 to 250") {
			t.Errorf("%d hosts: %v", n, err)
		}
	}
}

// TestImpossibleHost: a host that cannot be made, of which the clock would be before the
// machine's start, is an error, and the switch that was made before it is gone.
func TestImpossibleHost(t *testing.T) {
	n, err := New(1, -1e6*time.Hour)
	if missing := Possible(); missing != nil { // which New says, too
		if n != nil || err == nil || err.Error() != missing.Error() {
			t.Errorf("got %v, %v, want %v", n, err, missing)
		}
		t.Skip(missing)
	}
	if n != nil || err == nil || !strings.Contains(err.Error(), "cannot be made") || strings.Contains(err.Error(), "keeps") {
		t.Errorf("got %v, %v", n, err)
	}
}

// TestPiece: what TCP hands to a limited link at once fits into a burst of it, and where
// there is no limit it is as large as usual.
func TestPiece(t *testing.T) {
	for gbit, want := range map[float64]int{0: 64 << 10, 0.002: leastBurst / 2, 0.1: leastBurst / 2, 1: 31250, 10: 64 << 10, 400: 64 << 10} {
		if got := piece(gbit); got != want || gbit > 0 && got >= burst(gbit) {
			t.Errorf("%v Gbit/s: %d bytes of a burst of %d, want %d", gbit, got, burst(gbit), want)
		}
	}
}
