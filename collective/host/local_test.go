package host

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair are the two ends of a connection within a host.
func pair(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f) // which has a descriptor of its own
		if err != nil {
			t.Fatal(err)
		}
		shut(t, f)
		t.Cleanup(func() { shut(t, c) })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// open counts this process's descriptors of memory of that name.
func open(t *testing.T, name string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, "/memfd:"+name+" ") { // else it is closed meanwhile
			n++
		}
	}
	return n
}

// TestMemoryForNobody: of shared memory that still comes when a rank has closed its Comm no
// descriptor is left, be it taken in or not.
func TestMemoryForNobody(t *testing.T) {
	const name = "memory for nobody"
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection closes what is forgotten
	near, far := pair(t)
	p := &peers{topo: newTopology(0, []string{"a", "a"}), log: quiet, arena: testArena(t, 2), star: &star{conns: []*net.UnixConn{nil, near}, files: make(chan *os.File, 1)}}
	p.arena.slot(1).left.Store(1) // its end is no failure
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		p.watchLocal(1, &alarm{peers: p, raised: make(chan struct{})}, over)
		close(ended)
	}()
	f, err := createSegment(name, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := sendFile(far, f); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, f)
	await := func(want int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); open(t, name) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d descriptors are open, want %d", open(t, name), want)
			}
		}
	}
	await(2) // one is taken in, and one waits for that to be taken
	close(over)
	shut(t, far)
	<-ended
	if n := open(t, name); n != 1 {
		t.Errorf("%d descriptors are open, want that of what was taken in", n)
	}
	shut(t, <-p.star.files)
}

// TestMemoryKeepsItsSize: nobody can shrink shared memory under who maps it, or grow it, and what
// is not of the size that was agreed on is not mapped.
func TestMemoryKeepsItsSize(t *testing.T) {
	f, err := createSegment("sized", 2, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, pageSize, 3 * pageSize} {
		if err := f.Truncate(size); !errors.Is(err, unix.EPERM) {
			t.Errorf("%d bytes are made %d of: %v", 2*pageSize, size, err)
		}
	}
	if _, err := mapSegment(f, 3, 100); err == nil || !strings.Contains(err.Error(), "shared memory has 8192 bytes, expected 12288") {
		t.Errorf("memory of two ranks is mapped for three: %v", err)
	}
	s, err := takeSegment(f, 2, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.unmap(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file that was mapped is still open: %v", err)
	}
}
