package host

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// pumps are the two ends of a wire, each of which knows the other as host 1.
func pumps(t *testing.T) (a, b *pump) {
	t.Helper()
	far, near := connected(t)
	both := make([]*pump, 2)
	for i, c := range []net.Conn{far, near} {
		w, err := newWire(c)
		if err != nil {
			t.Fatal(err)
		}
		both[i] = newPump([]*link{nil, {rank: 1}}, []*wire{nil, w}, newCourtesy(company{ranks: 2, process: true}))
		t.Cleanup(func() { shut(t, closer(both[i].close)) })
	}
	return both[0], both[1]
}

// TestPumpBothWays: both ends send more than a connection holds before either reads.
func TestPumpBothWays(t *testing.T) {
	a, b := pumps(t)
	const size, first = 16 << 20, 1000
	swap := func(p *pump, fill byte) (in []byte, err error) {
		out := bytes.Repeat([]byte{fill}, size)
		in = make([]byte, size)
		p.post(1, in[:first])
		p.post(1, in[first:])
		err = p.send(1, out)
		err = errors.Join(err, p.flush(t.Context()))
		clear(out) // it is sent
		return in, errors.Join(err, p.wait(t.Context(), 1), p.wait(t.Context(), 1))
	}
	type got struct {
		in  []byte
		err error
	}
	done := make(chan got)
	go func() {
		in, err := swap(a, 1)
		done <- got{in, err}
	}()
	in, err := swap(b, 2)
	other := <-done
	if err := errors.Join(err, other.err); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(in, bytes.Repeat([]byte{1}, size)) || !bytes.Equal(other.in, bytes.Repeat([]byte{2}, size)) {
		t.Error("what came is not what was sent")
	}
}

// TestPumpEnds: a wait ends with its context, with a cut and with the other end, whether
// it reads or sends, soon after it has begun or when it sleeps.
func TestPumpEnds(t *testing.T) {
	end := errors.New("the reason")
	for name, wait := range map[string]func(ctx context.Context, p *pump) error{
		"read":   func(ctx context.Context, p *pump) error { _, err := p.read(ctx, 1, make([]byte, 8), 8); return err },
		"posted": func(ctx context.Context, p *pump) error { p.post(1, make([]byte, 8)); return p.wait(ctx, 1) },
		"send": func(ctx context.Context, p *pump) error {
			return errors.Join(p.send(1, make([]byte, 256<<20)), p.flush(ctx)) // more than there is room for
		},
	} {
		for _, after := range []time.Duration{0, 30 * time.Millisecond} {
			t.Run(name, func(t *testing.T) {
				var link *linkError
				p, _ := pumps(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(after, func() { cancel(end) })
				if err := wait(ctx, p); !errors.Is(err, end) {
					t.Errorf("after its context had ended it returned %v, want its cause", err)
				}
				p, _ = pumps(t)
				time.AfterFunc(after, p.cut)
				if err := wait(context.Background(), p); !errors.As(err, &link) || !errors.Is(err, errCut) {
					t.Errorf("after a cut it returned %v, want a linkError of it", err)
				}
				p, other := pumps(t)
				time.AfterFunc(after, func() { _ = other.close() })
				if err := wait(context.Background(), p); !errors.As(err, &link) || errors.Is(err, errCut) {
					t.Errorf("after the other end had closed it returned %v, want a linkError of that", err)
				}
			})
		}
	}
}

// TestWireOfPipe: what has no descriptor is refused.
func TestWireOfPipe(t *testing.T) {
	a, b := net.Pipe()
	defer shut(t, a)
	defer shut(t, b)
	if w, err := newWire(a); err == nil {
		t.Errorf("got a wire with descriptor %d of a pipe within the process", w.fd)
	}
}
