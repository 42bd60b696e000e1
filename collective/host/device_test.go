package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/colltest"
	"ebtrain/collective/host"
)

// apart is a device in name only: its memory is the host's, and so is what
// moves its data.
type apart struct{}

func (apart) Alloc(_ *host.Inside, n int) (collective.Vec, error) {
	v := collective.VecOf(make([]int64, n/8+9)).As(collective.U8)
	for uintptr(v.Ptr)%64 != 0 {
		v = v.Slice(8, v.Len)
	}
	return v.Slice(0, n), nil
}

func (apart) Run(in *host.Inside, req collective.Request) error {
	return in.Do(context.Background(), req)
}

// over makes the groups of TestOver of the groups of the transport, which end
// with the test.
func over(t testing.TB, comms []collective.Comm, limit time.Duration) []collective.Comm {
	t.Helper()
	out := make([]collective.Comm, len(comms))
	errs := make(chan error, len(comms))
	for r, c := range comms {
		t.Cleanup(func() { _ = c.Close() })
		go func() {
			o, err := c.(*host.Comm).Over(t.Context(), apart{}, limit)
			out[r] = o
			errs <- err
		}()
	}
	for range comms {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestOver: a group over a device keeps every promise of a group.
func TestOver(t *testing.T) {
	for _, hosts := range []string{"1", "3i"} {
		if testing.Short() && hosts == "1" { // what package nccl is over, too
			continue
		}
		t.Run("hosts="+hosts, func(t *testing.T) {
			t.Setenv(envHosts, hosts)
			t.Setenv(envOver, "1")
			colltest.Run(t, colltest.Factory{
				New: func(t testing.TB, n int) []collective.Comm {
					return over(t, group(t, n, host.Config{Hosts: pretend(hosts, n), ListenIP: "127.0.0.1"}), time.Minute)
				},
				Open: open, Brief: true, MaxRanks: 4,
			})
		})
	}
}

// envOver has processes of the suite play over a device.
const envOver = "HOST_TEST_OVER"

func openOver(ctx context.Context, c *host.Comm, err error) (collective.Comm, error) {
	if err != nil || os.Getenv(envOver) == "" {
		return c, err
	}
	return c.Over(ctx, apart{}, time.Minute)
}

// inTime tries something with limits of what others may be late by: on a busy machine who is
// there may come later than after the shortest.
func inTime(t *testing.T, try func(limit time.Duration) error) {
	t.Helper()
	var err error
	for _, limit := range []time.Duration{500 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
		if err = try(limit); err == nil {
			return
		}
		t.Logf("with a limit of %v: %v", limit, err)
	}
	t.Error(err)
}

// fails waits for the end of a group that has such a limit, and wants a text in why.
func fails(c collective.Comm, limit time.Duration, want string) error {
	h := c.(*host.Comm)
	select {
	case <-h.Failed():
	case <-time.After(limit + 20*time.Second):
		return errors.New("nobody misses rank 2")
	}
	if err := h.Failure(); !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("got %w, want an abort that says %s", err, want)
	}
	return nil
}

// TestLateRankIsNamed: who has not come within the limit ends both groups, by
// name, on one host and on several.
func TestLateRankIsNamed(t *testing.T) {
	for _, hosts := range []string{"1", "2", "4"} {
		t.Run("hosts="+hosts, func(t *testing.T) {
			inTime(t, func(limit time.Duration) error { return rankIsLate(t, hosts, limit) })
		})
	}
}

func rankIsLate(t *testing.T, hosts string, limit time.Duration) error {
	below := group(t, 4, host.Config{Hosts: pretend(hosts, 4), ListenIP: "127.0.0.1"})
	comms := over(t, below, limit)
	errs := make([]error, len(comms))
	var busy sync.WaitGroup
	for r, c := range comms { // what came before, with messages of all sorts, does not count
		defer func() { _ = c.Close() }()
		busy.Go(func() {
			for _, n := range []int{10, 5000, 50_000} {
				req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(make([]float32, n))}
				errs[r] = errors.Join(errs[r], collective.Do(t.Context(), c, req))
			}
		})
	}
	busy.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for r, c := range comms {
		if r == 2 {
			continue
		}
		go func() {
			_ = collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier, Label: "dinner"})
		}()
	}
	want := fmt.Sprintf(`rank 2 has not come to barrier "dinner" within %v`, limit)
	if err := fails(comms[1], limit, want); err != nil {
		return err
	}
	err := collective.Do(t.Context(), below[0], collective.Request{Kind: collective.Barrier})
	if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("the group below ended with %w, want the same", err)
	}
	return nil
}

// TestDeserter: who has closed is named by its rank, to those of its host and, if it leads
// one, to other leaders; as long as nobody misses it that is no failure.
func TestDeserter(t *testing.T) {
	for _, test := range []struct {
		closes int
		want   [5]int // who each rank says it is
	}{{2, [5]int{2, -1, 0, -1, 2}}, {1, [5]int{1, 0, -1, 1, -1}}} { // on hosts of 0, 2, 4 and of 1, 3
		comms := group(t, 5, host.Config{Hosts: pretend("2i", 5), ListenIP: "127.0.0.1"})
		for r, c := range comms {
			defer shut(t, c)
			if got := c.(*host.Comm).Deserter(); got != -1 {
				t.Errorf("rank %d takes %d for a deserter", r, got)
			}
		}
		shut(t, comms[test.closes])
		for r, want := range test.want {
			if r == test.closes {
				continue
			}
			got := comms[r].(*host.Comm).Deserter()
			for end := time.Now().Add(10 * time.Second); got != want && time.Now().Before(end); got = comms[r].(*host.Comm).Deserter() {
				time.Sleep(time.Millisecond)
			}
			if got != want {
				t.Errorf("rank %d has closed, and rank %d says that it was %d, want %d", test.closes, r, got, want)
			}
		}
		time.Sleep(20 * time.Millisecond) // all have read the ends of its connections
		for r, c := range comms {
			if err := c.(*host.Comm).Failure(); err != nil {
				t.Errorf("rank %d has closed in good order, and rank %d fails: %v", test.closes, r, err)
			}
		}
	}
}

// TestClosedIsSaid: a rank that is missed because it has closed is not called dead.
func TestClosedIsSaid(t *testing.T) {
	for _, hosts := range []string{"1", "2"} {
		comms := group(t, 2, host.Config{Hosts: pretend(hosts, 2), ListenIP: "127.0.0.1"})
		shut(t, comms[1])
		err := collective.Do(t.Context(), comms[0], collective.Request{Kind: collective.Barrier})
		e, ok := errors.AsType[*collective.Error](err)
		if !ok || e.Peer != 1 || !errors.Is(err, collective.ErrPeerLost) || !strings.Contains(err.Error(), "rank 1: it has closed its communicator") {
			t.Errorf("%s hosts: got %v, want that rank 1 has closed", hosts, err)
		}
		shut(t, comms[0])
	}
}

// TestLateInsideIsNamed: so does who comes to a collective, and then not to what is
// asked inside it, be that a meeting or slices that all leaders exchange with all.
func TestLateInsideIsNamed(t *testing.T) {
	for hosts, req := range map[string]collective.Request{
		"1": {Kind: collective.Barrier, Label: "dessert"},
		"3": {Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.Vec{Type: collective.F32, Len: 50_000}, Label: "dessert"},
	} {
		inTime(t, func(limit time.Duration) error { return rankIsLateInside(t, hosts, req, limit) })
	}
}

func rankIsLateInside(t *testing.T, hosts string, req collective.Request, limit time.Duration) error {
	comms := over(t, group(t, 3, host.Config{Hosts: pretend(hosts, 3), ListenIP: "127.0.0.1"}), limit)
	stands := make(chan struct{})
	defer close(stands)
	for r, c := range comms {
		go func() {
			_ = c.(*host.Comm).Within(t.Context(), "places", func(in *host.Inside) error {
				if r == 2 {
					<-stands
				}
				mine := req
				if req.Vec.Len > 0 {
					mine.Vec = collective.VecOf(make([]float32, req.Vec.Len))
				}
				return in.Do(context.Background(), mine)
			})
		}()
	}
	err := fails(comms[0], limit, fmt.Sprintf(`rank 2 has not come to %s "dessert" within %v`, req, limit))
	for _, c := range comms[:2] {
		_ = c.Close()
	}
	return err
}

// TestFailureBelowOver: who waits for another to connect to the new group hears at once that the
// group below has failed, and why.
func TestFailureBelowOver(t *testing.T) {
	for _, hosts := range []string{"1", "3"} {
		names := pretend(hosts, 3)
		below := group(t, 3, host.Config{Hosts: names, ListenIP: "127.0.0.1"})
		errs := make(chan error, 2)
		for _, c := range below[:2] {
			go func() {
				_, err := c.(*host.Comm).Over(t.Context(), apart{}, time.Minute)
				errs <- err
			}()
		}
		card := `{"version":5,"job":"suite, device 1","hosts":"` + host.HostsDigest(names) + `"}`
		if _, err := collective.GatherBytes(t.Context(), below[2], "cards", []byte(card)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the others wait for rank 2 to connect
		below[2].Abort(errors.New("the cause"))
		for range 2 {
			select {
			case err := <-errs:
				if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "the cause") {
					t.Errorf("%s hosts: got %v, want an abort with its cause", hosts, err)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s hosts: a rank still waits", hosts)
			}
		}
		for _, c := range below {
			_ = c.Close() // of a group that has failed
		}
	}
}

// TestEitherFailsBoth: an abort of the group below ends the one over it, with
// its cause, and not the other ranks' words twice.
func TestEitherFailsBoth(t *testing.T) {
	below := group(t, 3, host.Config{})
	comms := over(t, below, 0)
	below[1].Abort(errors.New("the cause"))
	for r, c := range comms {
		err := collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier})
		if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "the cause") {
			t.Errorf("rank %d: got %v, want an abort with its cause", r, err)
		}
		if n := strings.Count(err.Error(), "collective: group aborted"); n != 1 {
			t.Errorf("rank %d says %d times that the group was aborted: %v", r, n, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWithin: what a Device's owner asks inside comes in the order of Start, and
// its error is every rank's end. Who is told what begins and ends in the group below is not told
// of this one, whose numbers are others.
func TestWithin(t *testing.T) {
	var told atomic.Int32
	comms := over(t, group(t, 3, host.Config{
		Progress: func(uint64, collective.Request) { told.Add(1) }, Ended: func(uint64, error) { told.Add(1) },
	}), 0)
	if n := told.Swap(0); n == 0 {
		t.Error("nobody is told of what making the group takes below")
	}
	odd := errors.New("odd")
	errs := make(chan error, len(comms))
	for r, c := range comms {
		go func() {
			errs <- func() error {
				first := c.Start(collective.Request{Kind: collective.Barrier})
				got := []int64{int64(r)}
				err := c.(*host.Comm).Within(t.Context(), "sum", func(in *host.Inside) error {
					if err := in.Do(t.Context(), collective.Request{Kind: collective.Broadcast, Root: 3, Vec: collective.VecOf(got)}); !errors.Is(err, collective.ErrInvalid) {
						return fmt.Errorf("what is malformed gets %w", err)
					}
					return in.Do(t.Context(), collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(got)})
				})
				if err := errors.Join(first.Wait(t.Context()), err); err != nil || got[0] != 3 {
					return fmt.Errorf("sum %d, %w", got[0], err)
				}
				err = c.(*host.Comm).Within(t.Context(), "fails", func(*host.Inside) error {
					if r == 1 {
						return odd
					}
					return nil
				})
				if errors.Is(err, odd) != (r == 1) {
					return fmt.Errorf("got %w", err)
				}
				if err := collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier}); !errors.Is(err, collective.ErrAborted) {
					return fmt.Errorf("after the failure: %w", err)
				}
				return nil
			}()
		}()
	}
	for range comms {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := told.Load(); n > 0 {
		t.Errorf("who is told of the group below is told %d times of the one above", n)
	}
	for _, c := range comms {
		_ = c.Close() // of a group that has failed
	}
}

// TestAgree: lines that differ, or that one rank has and another has not, are a mismatch that
// names both, on every rank.
func TestAgree(t *testing.T) {
	for want, lines := range map[string][3][]string{
		"":                                      {{"a", "", "c"}, {"a", "", "c"}, {"a", "", "c"}},
		"line 1: rank 0 has b, rank 2 has d":    {{"a", "b"}, {"a", "b"}, {"a", "d"}},
		"line 2: rank 0 has none, rank 1 has c": {{"a", "b"}, {"a", "b", "c"}, {"a", "b"}},
		"line 0: rank 0 has a, rank 1 has none": {{"a"}, nil, {"b"}},
	} {
		comms := over(t, group(t, 3, host.Config{}), 0)
		errs := make([]error, len(comms))
		var wg sync.WaitGroup
		for r, c := range comms {
			wg.Go(func() {
				errs[r] = c.(*host.Comm).Within(t.Context(), "lines", func(in *host.Inside) error { return in.Agree("line", lines[r]) })
			})
		}
		wg.Wait()
		for r, err := range errs {
			if want == "" && err != nil || want != "" && (!errors.Is(err, collective.ErrMismatch) || !strings.Contains(err.Error(), want)) {
				t.Errorf("lines %q: rank %d got %v, want %q", lines, r, err, want)
			}
			shut(t, comms[r])
		}
	}
}

// TestWhoAborted: in a group that does nothing, too, all hear who has ended it, and only that
// rank takes it for its own doing.
func TestWhoAborted(t *testing.T) {
	for _, hosts := range []string{"1", "2"} {
		comms := group(t, 4, host.Config{Hosts: pretend(hosts, 4), ListenIP: "127.0.0.1"})
		comms[1].Abort(errors.New("enough"))
		for r, c := range comms {
			c := c.(*host.Comm)
			select {
			case <-c.Failed():
			case <-time.After(20 * time.Second):
				t.Fatalf("%s hosts: rank %d hears nothing", hosts, r)
			}
			err := c.Failure()
			if errors.Is(err, collective.ErrOwnAbort) != (r == 1) || !strings.Contains(err.Error(), "enough") || strings.Contains(err.Error(), "by rank 1: ") != (r != 1) {
				t.Errorf("%s hosts, rank %d: got %v; its own: %v", hosts, r, err, errors.Is(err, collective.ErrOwnAbort))
			}
			want := 1 // at fault, but to itself nobody is
			if r == 1 {
				want = -1
			}
			err = collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier})
			if e, ok := errors.AsType[*collective.Error](err); !ok || e.Peer != want {
				t.Errorf("%s hosts, rank %d: got %v, want rank %d to be at fault", hosts, r, err, want)
			}
			shut(t, c)
		}
	}
}

// TestBlameIsPassedOn: a rank that ends the group because of what another is to blame for says
// so to all: who it was, and what sort of failure.
func TestBlameIsPassedOn(t *testing.T) {
	comms := group(t, 3, host.Config{})
	comms[0].Abort(fmt.Errorf("below: %w", &collective.Error{Kind: collective.Barrier, Label: "dinner", Peer: 2, Err: collective.ErrPeerLost}))
	for r, c := range comms {
		err := collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier})
		if e, ok := errors.AsType[*collective.Error](err); !ok || e.Peer != 2 || !errors.Is(err, collective.ErrPeerLost) || errors.Is(err, collective.ErrOwnAbort) {
			t.Errorf("rank %d: got %v, want that rank 2 is lost", r, err)
		}
		shut(t, c)
	}
}

// TestMarks: what is asked inside a collective is no barrier of Start's, and who calls the roll
// when the other has gone on to something else, on the same host or another, has a device that
// hangs: they do not disagree.
func TestMarks(t *testing.T) {
	barrier := func(c *host.Comm) error {
		return collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier, Label: "dinner"})
	}
	within := func(c *host.Comm) error {
		return c.Within(t.Context(), "places", func(*host.Inside) error { return nil })
	}
	roll := func(c *host.Comm) error { return c.CallRoll(t.Context(), "the roll call") }
	for _, hosts := range []string{"1", "2"} {
		for _, test := range []struct {
			do   [2]func(c *host.Comm) error
			late int // whose device hangs, -1 if they disagree
		}{{[2]func(c *host.Comm) error{within, barrier}, -1}, {[2]func(c *host.Comm) error{roll, barrier}, 0}, {[2]func(c *host.Comm) error{within, roll}, 1}} {
			comms := over(t, group(t, 2, host.Config{Hosts: pretend(hosts, 2), ListenIP: "127.0.0.1"}), time.Minute)
			errs := make([]error, 2)
			var wg sync.WaitGroup
			for r, c := range comms {
				wg.Go(func() { errs[r] = test.do[r](c.(*host.Comm)) })
			}
			wg.Wait()
			for r, err := range errs {
				e, ok := errors.AsType[*collective.Error](err)
				hangs := fmt.Sprintf("rank %d has come to the roll call, and rank %d to ", test.late, 1-test.late)
				switch {
				case !ok:
					t.Errorf("%s hosts, rank %d: got %v", hosts, r, err)
				case test.late < 0 && !errors.Is(err, collective.ErrMismatch):
					t.Errorf("%s hosts, rank %d: got %v, want that they disagree", hosts, r, err)
				case test.late >= 0 && (errors.Is(err, collective.ErrMismatch) || e.Peer != test.late || !strings.Contains(err.Error(), hangs) ||
					!strings.Contains(err.Error(), fmt.Sprintf("the device of rank %d or a link to it hangs", test.late))):
					t.Errorf("%s hosts, rank %d: got %v, want that the device of rank %d hangs", hosts, r, err, test.late)
				}
			}
			for _, c := range comms {
				_ = c.Close() // of a group that has failed
			}
		}
	}
}
