package nccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/colltest"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/host"
	"ebtrain/collective/nccl"
)

func TestMain(m *testing.M) {
	colltest.Main(open)
	os.Exit(m.Run())
}

// envFixed has processes of the suite sum in a fixed order.
const envFixed = "NCCL_TEST_FIXED"

func options() nccl.Options {
	return nccl.Options{FixedOrder: os.Getenv(envFixed) != "", Timeout: time.Minute, InitTimeout: 30 * time.Second}
}

// open joins a group of processes, each with a GPU of its own.
func open(ctx context.Context, rank, size int, dir string) (collective.Comm, error) {
	below, err := host.New(ctx, host.Config{Rank: rank, Size: size, Job: "suite", Key: []byte("a key for tests, nothing secret"),
		Exchange: host.DirExchange(dir, rank, size)})
	if err != nil {
		return nil, err
	}
	dev, err := cuda.OpenDevice(rank)
	if err != nil {
		return nil, err
	}
	c, err := nccl.New(ctx, below, dev, options())
	if err != nil {
		return nil, err
	}
	return &owned{c, dev, below}, nil
}

// owned closes what its Comm stands on, too.
type owned struct {
	*nccl.Comm
	dev   *cuda.Device
	below collective.Comm
}

func (o *owned) Close() error { return errors.Join(o.Comm.Close(), o.dev.Close(), o.below.Close()) }

// member is a rank of a group in this process.
type member struct {
	*nccl.Comm
	dev    *cuda.Device
	stream *cuda.Stream
	below  *host.Comm

	mu      sync.Mutex
	buffers []*buffer
}

// group makes n ranks, each with a GPU of its own. The end of the test closes
// what is still open, and demands that nothing is left.
func group(t testing.TB, n int, o nccl.Options) []*member {
	t.Helper()
	members, errs := attempt(t, n, func(int) nccl.Options { return o })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return members
}

// attempt is group that may fail; members without a Comm are nil then.
func attempt(t testing.TB, n int, o func(rank int) nccl.Options) ([]*member, []error) {
	t.Helper()
	m := cudatest.Use(t)
	m.Set("DEVICES", strconv.Itoa(n))
	return attemptOn(t, m, n, func(r int) int { return r }, o)
}

func attemptOn(t testing.TB, m *cudatest.Machine, n int, gpu func(rank int) int, o func(rank int) nccl.Options) ([]*member, []error) {
	t.Helper()
	below, err := host.NewLocal(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	members, errs := make([]*member, n), make([]error, n)
	var devs []*cuda.Device
	for r := range n {
		dev, err := cuda.OpenDevice(gpu(r))
		if err != nil {
			t.Fatal(err)
		}
		devs = append(devs, dev)
	}
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			c, err := nccl.New(context.Background(), below[r], devs[r], o(r))
			if errs[r] = err; err != nil {
				return
			}
			s, err := devs[r].NewStream("test", 0)
			members[r], errs[r] = &member{Comm: c, dev: devs[r], stream: s, below: below[r]}, err
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		var errs []error
		for _, x := range members {
			if x != nil {
				errs = append(errs, x.end())
			}
		}
		for r := range n {
			errs = append(errs, below[r].Close(), devs[r].Close())
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		m.Clean()
	})
	return members, errs
}

// end frees what tests have made, when the Comm is closed.
func (x *member) end() error {
	errs := []error{x.Close(), x.stream.Close()}
	for _, b := range x.buffers {
		errs = append(errs, x.dev.Free(b.at))
	}
	return errors.Join(errs...)
}

// buffer is device memory for the suite.
type buffer struct {
	of *member
	at cuda.Ptr
	n  int
}

func (b *buffer) Ptr() unsafe.Pointer { return b.at.Vec(b.n).Ptr }

func (b *buffer) Write(p []byte) {
	must(b.copy(p, func(stage *cuda.Pinned) error {
		copy(stage.Bytes(), p)
		return b.of.stream.CopyIn(b.at, stage, 0, len(p))
	}, false))
}

func (b *buffer) Read(p []byte) {
	must(b.copy(p, func(stage *cuda.Pinned) error { return b.of.stream.CopyOut(stage, 0, b.at, len(p)) }, true))
}

func (b *buffer) copy(p []byte, do func(stage *cuda.Pinned) error, out bool) error {
	if len(p) == 0 {
		return nil
	}
	stage, err := b.of.dev.AllocPinned(len(p))
	if err != nil {
		return err
	}
	err = errors.Join(do(stage), b.of.stream.Sync(context.Background()))
	if out {
		copy(p, stage.Bytes())
	}
	return errors.Join(err, stage.Free())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (x *member) buffer(n int) (*buffer, error) {
	p, err := x.dev.Alloc(int64(max(n, 1)))
	b := &buffer{x, p, n}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.buffers = append(x.buffers, b)
	return b, err
}

func factory(o nccl.Options) colltest.Factory {
	return colltest.Factory{
		New: func(t testing.TB, n int) []collective.Comm {
			var comms []collective.Comm
			for _, x := range group(t, n, o) {
				comms = append(comms, x)
			}
			return comms
		},
		Open: open,
		Memory: func(c collective.Comm, n int) (colltest.Buffer, error) {
			return c.(*member).buffer(n)
		},
		Wrap: func(c collective.Comm, mem collective.Vec) colltest.Buffer {
			return &buffer{c.(*member), cuda.AddressOf(mem), mem.Len}
		},
		Brief: true, MaxRanks: 5,
	}
}

// TestConformance: NCCL's own sums, and those in a fixed order.
func TestConformance(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		t.Run(fmt.Sprintf("fixed=%v", fixed), func(t *testing.T) {
			cudatest.Use(t)
			t.Setenv("EBDOUBLE_DEVICES", "5") // for processes
			if fixed {
				t.Setenv(envFixed, "1")
			}
			colltest.Run(t, factory(options()))
		})
	}
}
