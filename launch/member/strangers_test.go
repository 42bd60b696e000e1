package member

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// The first stranger is told of at once, with where it is and how it differs, and those that come
// soon after in one line at the end, with what the last was.
func TestStrangersAreToldOf(t *testing.T) {
	var out bytes.Buffer
	s := strangers{log: slog.New(slog.NewTextHandler(&out, nil))}
	at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port} }
	lines := func(want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(got) != len(want) {
			t.Fatalf("got %q, want %d lines", got, len(want))
		}
		for i, w := range want {
			if !strings.HasSuffix(got[i], w) {
				t.Errorf("got %q, want …%s", got[i], w)
			}
		}
	}
	const first, last = `because="another key" from=10.0.0.1:1 so_far=1`, `because="another label" from=10.0.0.1:3 so_far=3`
	s.met(at(1), errors.New("another key"))
	s.met(at(2), errors.New("another key"))
	s.met(at(3), errors.New("another label"))
	lines(first)
	s.tell(true)
	s.tell(true)
	lines(first, last)
	s.at = time.Now().Add(-tellInterval) // enough time has passed for one more line
	s.met(at(4), errors.New("another key"))
	s.met(at(5), errors.New("another key"))
	lines(first, last, `because="another key" from=10.0.0.1:4 so_far=4`)
}
