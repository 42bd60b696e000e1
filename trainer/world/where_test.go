package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"ebtrain/collective/processors"
)

// Ranks share processors that both may run on, on one machine: not those of disjoint sets, nor
// equal numbers of another machine.
func TestSharing(t *testing.T) {
	set := processors.Of
	hosts := []string{"h", "h", "h", "other"}
	for name, c := range map[string]struct {
		where    []whereabouts
		sharing  int // of rank 0
		together int // processors of its machine
	}{
		"bound apart":           {[]whereabouts{{"m", set(0, 1)}, {"m", set(2, 3)}, {"m", set(4, 5)}, {"n", set(0, 1)}}, 1, 6},
		"not bound":             {[]whereabouts{{"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(0, 1)}, {"n", set(0, 1)}}, 3, 2},
		"two on each":           {[]whereabouts{{"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(2, 3)}, {"n", set(0, 1)}}, 2, 4},
		"some in common":        {[]whereabouts{{"m", set(0, 1)}, {"m", set(1, 2)}, {"m", set(2, 3)}, {"n", set(0, 1)}}, 2, 4},
		"hosts of one machine":  {[]whereabouts{{"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(0, 1)}}, 4, 2},
		"machines without name": {[]whereabouts{{"", set(0, 1)}, {"", set(0, 1)}, {"", set(0, 1)}, {"", set(0, 1)}}, 3, 2},
	} {
		if n := sharing(c.where, hosts, 0); n != c.sharing {
			t.Errorf("%s: %d ranks share the processors of rank 0, want %d", name, n, c.sharing)
		}
		if n := together(c.where, hosts, 0).Count(); n != c.together {
			t.Errorf("%s: %d processors, want %d", name, n, c.together)
		}
	}
}

// Where a rank is not reached, the error says what to do, and where another thing fails it does
// not.
func TestNoWay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := (&net.Dialer{}).DialContext(ctx, "tcp", "192.0.2.1:9")
	if err = fmt.Errorf("connect to rank 0: %w", err); !strings.Contains(noWay(err), "ddplaunch --network") {
		t.Errorf("%v has no advice", err)
	}
	for _, other := range []error{nil, errors.New("x"), &net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}, &net.OpError{Op: "dial", Net: "unix", Err: errors.New("full")}} {
		if noWay(other) != "" {
			t.Errorf("%v has advice of another error", other)
		}
	}
}
