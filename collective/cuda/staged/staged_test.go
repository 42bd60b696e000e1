//go:build cgo

package staged_test

import (
	"bytes"
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
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/cuda/staged"
	"ebtrain/collective/host"
)

func TestMain(m *testing.M) {
	colltest.Main(open)
	os.Exit(m.Run())
}

var options = staged.Options{Timeout: time.Minute}

// open joins a group of processes that share a GPU.
func open(ctx context.Context, rank, size int, dir string) (collective.Comm, error) {
	below, err := host.New(ctx, host.Config{Rank: rank, Size: size, Job: "suite", Key: []byte("a key for tests, nothing secret"),
		Exchange: host.DirExchange(dir, rank, size)})
	if err != nil {
		return nil, err
	}
	dev, err := cuda.OpenDevice(0)
	if err != nil {
		return nil, err
	}
	c, err := staged.New(ctx, below, dev, options)
	if err != nil {
		return nil, err
	}
	return &owned{c, dev, below}, nil
}

// owned closes what its Comm stands on, too.
type owned struct {
	*staged.Comm
	dev   *cuda.Device
	below collective.Comm
}

func (o *owned) Close() error { return errors.Join(o.Comm.Close(), o.dev.Close(), o.below.Close()) }

// member is a rank of a group in this process.
type member struct {
	*staged.Comm
	dev    *cuda.Device
	memory *cudatest.Memory
	below  *host.Comm
}

var groups atomic.Int32 // that are not ended

// group makes n ranks that share a GPU. The end of the test closes what is still
// open, and demands that nothing is left.
func group(t testing.TB, n int, o staged.Options) []*member {
	t.Helper()
	m := cudatest.Use(t)
	below, err := host.NewLocal(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	groups.Add(1)
	members, errs := make([]*member, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			errs[r] = func() error {
				dev, err := cuda.OpenDevice(0)
				if err != nil {
					return err
				}
				c, err := staged.New(context.Background(), below[r], dev, o)
				if err != nil {
					return err
				}
				memory, err := cudatest.NewMemory(dev)
				members[r] = &member{c, dev, memory, below[r]}
				return err
			}()
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for r, x := range members {
			if x == nil { // the test has closed it
				continue
			}
			if err := errors.Join(x.Close(), x.memory.Close(), x.dev.Close(), below[r].Close()); err != nil {
				t.Error(err)
			}
		}
		if groups.Add(-1) == 0 {
			m.Clean()
		}
	})
	return members
}

func TestConformance(t *testing.T) {
	cudatest.Use(t)
	colltest.Run(t, colltest.Factory{
		New: func(t testing.TB, n int) []collective.Comm {
			var comms []collective.Comm
			for _, x := range group(t, n, options) {
				comms = append(comms, x)
			}
			return comms
		},
		Open:   open,
		Memory: func(c collective.Comm, n int) (colltest.Buffer, error) { return c.(*member).memory.Alloc(n) },
		Wrap: func(c collective.Comm, mem collective.Vec) colltest.Buffer {
			return c.(*member).memory.At(cuda.AddressOf(mem))
		},
		Brief: true, MaxRanks: 5, Also: []int{4, 5},
	})
}

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

// TestEnqueue: what is behind other work of a stream comes after it, is not
// captured, and has the bits of the host's group.
func TestEnqueue(t *testing.T) {
	const n = 3 << 20 // elements; several pieces
	members := group(t, 3, options)
	together(t, members, func(x *member) error {
		mem, err := x.Alloc(4 * n)
		if err != nil {
			return err
		}
		in := make([]float32, n)
		for i := range in {
			in[i] = float32(i%997)*0.37 + float32(x.Rank())*0.11
		}
		s, err := x.dev.NewStream("program", 0)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }() // done with
		stage, err := x.dev.AllocPinned(4 * n)
		if err != nil {
			return err
		}
		defer func() { _ = stage.Free() }() // done with
		copy(stage.Bytes(), collective.VecOf(in).Bytes())
		req := collective.Request{Kind: collective.AllReduce, Op: collective.Mean, Vec: mem.As(collective.F32), Label: "gradient"}
		if err := x.Agree(t.Context(), []collective.Request{req}); err != nil {
			return err
		}
		over, err := x.dev.NewEvent(false)
		if err != nil {
			return err
		}
		defer func() { _ = over.Close() }() // done with
		if err := errors.Join(s.CopyIn(cuda.AddressOf(mem), stage, 0, 4*n), x.Enqueue(s, req),
			s.CopyOut(stage, 0, cuda.AddressOf(mem), 4*n), s.Record(over), x.Await(t.Context(), over)); err != nil {
			return err
		}
		got := append([]byte(nil), stage.Bytes()...)
		want := collective.VecOf(in)
		if err := collective.Do(t.Context(), x.below, collective.Request{Kind: collective.AllReduce, Op: collective.Mean, Vec: want}); err != nil {
			return err
		}
		if string(got) != string(want.Bytes()) {
			return errors.New("the bits are not those of the host's group")
		}
		return x.dev.Do(func() error {
			if err := s.BeginCapture(); err != nil {
				return err
			}
			err := x.Enqueue(s, req)
			g, endErr := s.EndCapture()
			if endErr == nil {
				endErr = g.Close()
			}
			if err == nil || !strings.Contains(err.Error(), `"gradient" passes through the host and cannot be captured`) {
				return errors.Join(endErr, errors.New("captured"), err)
			}
			return endErr
		})
	})
}

// TestPieces: vectors that pass through the host in several pieces, also of each of their parts,
// end as the host's group leaves them.
func TestPieces(t *testing.T) {
	const part = 700_001
	members := group(t, 3, options)
	together(t, members, func(x *member) error {
		mem, err := x.Alloc(4 * 3 * part)
		if err != nil {
			return err
		}
		for _, req := range []collective.Request{
			{Kind: collective.AllReduce, Op: collective.Max}, {Kind: collective.ReduceScatter, Op: collective.Sum},
			{Kind: collective.AllGather}, {Kind: collective.Broadcast, Root: 2},
		} {
			in := make([]float32, 3*part)
			for i := range in {
				in[i] = float32((i*7 + x.Rank()*31) % 1009)
			}
			want := collective.VecOf(in)
			x.memory.At(cuda.AddressOf(mem)).Write(want.Bytes())
			req.Vec = mem.As(collective.F32)
			if err := collective.Do(t.Context(), x, req); err != nil {
				return err
			}
			got := make([]byte, 4*3*part)
			x.memory.At(cuda.AddressOf(mem)).Read(got)
			req.Vec = want
			if err := collective.Do(t.Context(), x.below, req); err != nil {
				return err
			}
			lo, hi := 0, len(got)
			if req.Kind == collective.ReduceScatter {
				lo, hi = 4*part*x.Rank(), 4*part*(x.Rank()+1)
			}
			if !bytes.Equal(got[lo:hi], want.Bytes()[lo:hi]) {
				return fmt.Errorf("%s differs from that of the host's group", req)
			}
		}
		return nil
	})
}

// TestLateRankIsNamed: who does not come ends the group, and the host's.
func TestLateRankIsNamed(t *testing.T) {
	members := group(t, 3, staged.Options{Timeout: 2 * time.Second})
	together(t, members, func(x *member) error {
		var err error
		if x.Rank() != 1 {
			err = collective.Do(t.Context(), x, collective.Request{Kind: collective.Barrier, Label: "dinner"})
		} else {
			<-x.Failed()
			err = x.Failure()
		}
		if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), `rank 1 has not come to barrier "dinner"`) {
			return errors.Join(errors.New("want an abort that names rank 1"), err)
		}
		return nil
	})
}
