package congestion

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyBBRIsReplaced(t *testing.T) {
	for name, want := range map[string][]string{
		"bbr": {"cubic", "reno"}, "bbr3": {"cubic", "reno"},
		"cubic": nil, "reno": nil, "dctcp": nil, "": nil,
	} {
		if got := instead(name); !slices.Equal(got, want) {
			t.Errorf("instead of %q: %q, expected %q", name, got, want)
		}
	}
}

// TestBothEndsHaveTheChoice on a machine that is made to prefer BBR, if it has it.
func TestBothEndsHaveTheChoice(t *testing.T) {
	for _, first := range []string{"bbr", "reno"} {
		t.Run(first, func(t *testing.T) {
			prefer := func(network, addr string, c syscall.RawConn) error {
				err := on(c, func(fd int) error {
					return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, first)
				})
				return errors.Join(err, Choose(network, addr, c))
			}
			listen := net.ListenConfig{Control: prefer}
			ln, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
				t.Skipf("this machine has no %s: %v", first, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ln.Close() }()
			dialer := net.Dialer{Control: prefer}
			near, err := dialer.DialContext(t.Context(), "tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = near.Close() }()
			far, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = far.Close() }()
			for end, c := range map[string]net.Conn{"dialer": near, "listener": far} {
				got := nameOf(t, c.(*net.TCPConn))
				if want := map[string]string{"bbr": "cubic", "reno": "reno"}[first]; got != want && may(t, want) || strings.HasPrefix(got, "bbr") {
					t.Errorf("the %s's end has %s where %s was preferred, expected %s", end, got, first, want)
				}
				if name, err := Paced(c.(*net.TCPConn)); name != "" || err != nil {
					t.Errorf("the %s's end is called paced: %q, %v", end, name, err)
				}
			}
		})
	}
}

// may says whether this process may choose a control.
func may(t *testing.T, name string) bool {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil
}

// TestPacedIsTold: where nothing has been chosen.
func TestPacedIsTold(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := on(raw, func(fd int) error {
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "bbr")
	}); err != nil {
		t.Skipf("this machine has no bbr: %v", err)
	}
	if name, err := Paced(c.(*net.TCPConn)); name != "bbr" || err != nil {
		t.Errorf("paced: %q, %v; expected bbr", name, err)
	}
}

// TestOtherSocketsAreLeft: a Control is asked about those as well.
func TestOtherSocketsAreLeft(t *testing.T) {
	dialer := net.Dialer{Control: Choose}
	addr := "@" + t.Name()
	ln, err := net.Listen("unixpacket", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	c, err := dialer.DialContext(t.Context(), "unixpacket", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
}

func nameOf(t *testing.T, c *net.TCPConn) string {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := on(raw, func(fd int) (err error) {
		name, err = control(fd)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return name
}
