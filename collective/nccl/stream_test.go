//go:build cgo

package nccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
)

// together runs do for all ranks at once.
func together(t *testing.T, members []*member, do func(x *member) error) {
	t.Helper()
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for r, x := range members {
		wg.Go(func() { errs[r] = do(x) })
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// program is a stream with collectives of every sort on one vector of Alloc,
// and what the group of the hosts makes of them.
type program struct {
	*member
	s     *cuda.Stream
	over  *cuda.Event
	stage *cuda.Pinned
	graph *cuda.Exec // by capture
	mem   collective.Vec
	reqs  []collective.Request
}

const perType = 6 * 64 * 5 // elements: divisible by all numbers of ranks

var floats = []collective.DType{collective.F32, collective.F64, collective.BF16}

func newProgram(ctx context.Context, x *member) (*program, error) {
	p := &program{member: x}
	size := 0
	for _, d := range floats {
		size += 4 * perType * d.Size()
	}
	var errs [4]error
	p.mem, errs[0] = x.Alloc(size)
	p.s, errs[1] = x.dev.NewStream("program", 0)
	p.over, errs[2] = x.dev.NewEvent(false)
	p.stage, errs[3] = x.dev.AllocPinned(size)
	if err := errors.Join(errs[:]...); err != nil {
		return p, err
	}
	p.reqs = requestsOn(p.mem, x.Size())
	return p, x.Agree(ctx, p.reqs)
}

// requestsOn cuts mem into vectors.
func requestsOn(mem collective.Vec, ranks int) []collective.Request {
	var reqs []collective.Request
	at := 0
	for _, d := range floats {
		for i, req := range []collective.Request{
			{Kind: collective.AllReduce, Op: collective.Sum}, {Kind: collective.AllReduce, Op: collective.Mean},
			{Kind: collective.ReduceScatter, Op: collective.Mean}, {Kind: collective.AllGather},
		} {
			n := perType
			if i < 2 {
				n -= 5 // slices of different lengths, and one that is no multiple of 64
			}
			req.Vec = mem.Slice(at, at+n*d.Size()).As(d)
			req.Label = fmt.Sprintf("vector %d", len(reqs))
			reqs = append(reqs, req)
			at += perType * d.Size()
		}
	}
	return append(reqs, collective.Request{Kind: collective.Broadcast, Root: ranks - 1, Vec: reqs[0].Vec, Label: "last"})
}

// fill is what a rank begins with.
func (p *program) fill(b []byte, run int) {
	at := 0
	for _, d := range floats {
		for i := range 4 * perType {
			x := float32((i*7+p.Rank()*13+run)%101)*0.173 - 5
			put(d, b[at:], x)
			at += d.Size()
		}
	}
}

func put(d collective.DType, b []byte, x float32) {
	switch d {
	case collective.F32:
		copy(b, collective.VecOf([]float32{x}).Bytes())
	case collective.F64:
		copy(b, collective.VecOf([]float64{float64(x)}).Bytes())
	case collective.BF16:
		copy(b, collective.VecBF16([]uint16{collective.ToBF16(x)}).Bytes())
	}
}

// enqueue puts all collectives between the copies in and out.
func (p *program) enqueue() error {
	n := len(p.stage.Bytes())
	if err := p.s.CopyIn(cuda.AddressOf(p.mem), p.stage, 0, n); err != nil {
		return err
	}
	for _, req := range p.reqs {
		if err := p.Enqueue(p.s, req); err != nil {
			return err
		}
	}
	return p.s.CopyOut(p.stage, 0, cuda.AddressOf(p.mem), n)
}

// capture makes the program's graph.
func (p *program) capture() error {
	return p.dev.Do(func() error {
		if err := p.s.BeginCapture(); err != nil {
			return err
		}
		err := p.enqueue()
		g, endErr := p.s.EndCapture()
		if err := errors.Join(err, endErr); err != nil {
			return err
		}
		p.graph, err = g.Instantiate()
		return errors.Join(err, g.Close())
	})
}

// run fills, runs, waits, and returns what came out.
func (p *program) run(ctx context.Context, run int, start func() error) ([]byte, error) {
	p.fill(p.stage.Bytes(), run)
	if err := errors.Join(start(), p.s.Record(p.over), p.Await(ctx, p.over)); err != nil {
		return nil, err
	}
	return bytes.Clone(p.stage.Bytes()), nil
}

// host is what the group of the hosts makes of the same.
func (p *program) host(ctx context.Context, run int) ([]byte, error) {
	words := make([]int64, len(p.stage.Bytes())/8)
	mem := collective.VecOf(words).As(collective.U8)
	p.fill(mem.Bytes(), run)
	for _, req := range requestsOn(mem, p.Size()) {
		if err := collective.Do(ctx, p.below, req); err != nil {
			return nil, err
		}
	}
	return mem.Bytes(), nil
}

// defined leaves of b what the collectives define on this rank.
func (p *program) defined(b []byte) []byte {
	b = bytes.Clone(b)
	base := p.reqs[0].Vec.Ptr
	for _, req := range p.reqs {
		if req.Kind == collective.ReduceScatter {
			at := int(uintptr(req.Vec.Ptr) - uintptr(base))
			n := req.Vec.Len * req.Vec.Type.Size() / p.Size()
			clear(b[at : at+p.Rank()*n])
			clear(b[at+(p.Rank()+1)*n : at+p.Size()*n])
		}
	}
	return b
}

// close closes what there is of a program, once.
func (p *program) close() error {
	var errs []error
	if p.graph != nil {
		errs = append(errs, p.graph.Close())
	}
	if p.s != nil {
		errs = append(errs, p.s.Sync(context.Background()), p.s.Close())
	}
	if p.over != nil {
		errs = append(errs, p.over.Close())
	}
	if p.stage != nil {
		errs = append(errs, p.stage.Free())
	}
	p.graph, p.s, p.over, p.stage = nil, nil, nil, nil
	return errors.Join(errs...)
}

// TestStreams: enqueued and captured collectives give equal bits, on streams
// that dawdle at random; in a fixed order, those of the group of the hosts.
func TestStreams(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		for _, n := range []int{1, 2, 3, 4, 5} {
			t.Run(fmt.Sprintf("fixed=%v/ranks=%d", fixed, n), func(t *testing.T) {
				t.Setenv("EBDOUBLE_DELAY", "300")
				t.Setenv("EBDOUBLE_SEED", fmt.Sprint(n))
				t.Setenv("EBDOUBLE_ORDER", fmt.Sprint(n%3))
				o := options()
				o.FixedOrder = fixed
				together(t, group(t, n, o), func(x *member) error { return streams(t.Context(), x, fixed) })
			})
		}
	}
}

func streams(ctx context.Context, x *member, fixed bool) error {
	p, err := newProgram(ctx, x)
	defer func() { _ = p.close() }() // where it was not reached
	if err != nil {
		return err
	}
	want := make([][]byte, 4)
	for run := range want {
		if want[run], err = p.run(ctx, run, p.enqueue); err != nil {
			return err
		}
		if !fixed && x.Size() > 2 { // NCCL has its own order
			continue
		}
		host, err := p.host(ctx, run)
		if err != nil {
			return err
		}
		if !bytes.Equal(p.defined(host), p.defined(want[run])) {
			return fmt.Errorf("run %d has other bits than the group of the hosts", run)
		}
	}
	if err := p.capture(); err != nil {
		return err
	}
	for run := range want {
		got, err := p.run(ctx, run, func() error { return p.graph.Launch(p.s) })
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want[run]) {
			return fmt.Errorf("run %d has other bits when captured", run)
		}
		// What is started between runs of the graph comes in its turn.
		if err := collective.Do(ctx, x, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: p.reqs[0].Vec}); err != nil {
			return err
		}
	}
	req, ok := x.UnderWay()
	if !ok || req.Label != "last" {
		return fmt.Errorf("under way is %v, want the last collective", req)
	}
	return p.close()
}

// TestAgree: a program that differs names the collective and both ranks; what
// was not agreed on is not enqueued.
func TestAgree(t *testing.T) {
	for name, test := range map[string]struct {
		change func(reqs []collective.Request) []collective.Request
		want   string
	}{
		"length": {func(reqs []collective.Request) []collective.Request { reqs[1].Vec.Len--; return reqs },
			`collective 1: rank 0 has all-reduce mean f32[1915] at byte 7680 of allocation 0 "vector 1", rank 2 has all-reduce mean f32[1914]`},
		"order": {func(reqs []collective.Request) []collective.Request {
			reqs[4], reqs[5] = reqs[5], reqs[4]
			return reqs
		}, `collective 4: rank 0 has all-reduce sum f64`},
		"fewer": {func(reqs []collective.Request) []collective.Request { return reqs[:12] }, `collective 12: rank 0 has broadcast from 2 f32[1915] at byte 0 of allocation 0 "last", rank 2 has none`},
		"place": {func(reqs []collective.Request) []collective.Request { reqs[0].Vec.Ptr = reqs[1].Vec.Ptr; return reqs }, `at byte 0 of allocation 0 "vector 0", rank 2 has all-reduce sum f32[1915] at byte 7680`},
	} {
		t.Run(name, func(t *testing.T) {
			together(t, group(t, 3, options()), func(x *member) error {
				mem, err := x.Alloc(1 << 20)
				if err != nil {
					return err
				}
				reqs := requestsOn(mem, x.Size())
				if x.Rank() == 2 {
					reqs = test.change(reqs)
				}
				if err := x.Agree(t.Context(), reqs); !errors.Is(err, collective.ErrMismatch) || !strings.Contains(err.Error(), test.want) {
					return fmt.Errorf("got %w, want a mismatch with %s", err, test.want)
				}
				return nil
			})
		})
	}
	together(t, group(t, 2, options()), func(x *member) error {
		mem, err := x.Alloc(100)
		if err != nil {
			return err
		}
		s, err := x.dev.NewStream("program", 0)
		if err != nil {
			return err
		}
		err = x.Enqueue(s, collective.Request{Kind: collective.Broadcast, Vec: mem, Label: "surprise"})
		if !errors.Is(err, collective.ErrInvalid) || !strings.Contains(err.Error(), `broadcast from 0 u8[100] "surprise" is enqueued, and Agree was not given it`) {
			return fmt.Errorf("got %w", err)
		}
		return s.Close()
	})
}

// TestAbortWithGraphs: a captured collective that hangs ends when the group is
// aborted; the abort waits for the graph, which is closed meanwhile.
func TestAbortWithGraphs(t *testing.T) {
	t.Setenv("EBDOUBLE_NCCL_HANG", "1:13") // in the graph
	cause := errors.New("enough")
	o := options()
	together(t, group(t, 3, o), func(x *member) error {
		p, err := newProgram(t.Context(), x)
		defer func() { _ = p.close() }() // where it was not reached
		if err != nil {
			return err
		}
		if _, err := p.run(t.Context(), 0, p.enqueue); err != nil { // 13 operations
			return err
		}
		if err := p.capture(); err != nil {
			return err
		}
		if x.Rank() == 2 {
			time.AfterFunc(50*time.Millisecond, func() { x.Abort(cause) })
		}
		_, err = p.run(t.Context(), 1, func() error { return p.graph.Launch(p.s) })
		if !errors.Is(err, collective.ErrAborted) || errors.Is(err, cause) != (x.Rank() == 2) {
			return fmt.Errorf("got %w, want an abort", err)
		}
		if err := x.Enqueue(p.s, p.reqs[0]); !errors.Is(err, collective.ErrAborted) {
			return fmt.Errorf("enqueued after the end: %w", err)
		}
		return errors.Join(p.close(), x.Close())
	})
}

// TestHangIsNamed: a captured collective that does not end within the limit is
// named on every rank.
func TestHangIsNamed(t *testing.T) {
	t.Setenv("EBDOUBLE_NCCL_HANG", "1:14")
	o := options()
	o.Timeout = limit
	together(t, group(t, 3, o), func(x *member) error {
		p, err := newProgram(t.Context(), x)
		defer func() { _ = p.close() }() // where it was not reached
		if err != nil {
			return err
		}
		if _, err := p.run(t.Context(), 0, p.enqueue); err != nil {
			return err
		}
		if err := p.capture(); err != nil {
			return err
		}
		_, err = p.run(t.Context(), 1, func() error { return p.graph.Launch(p.s) })
		want := `all-reduce mean f32[1915] "vector 1"`
		if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("got %w, want an abort that names %s", err, want)
		}
		return p.close()
	})
}
