//go:build cgo

package nccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/colltest"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/host"
	"ebtrain/collective/nccl"
)

func TestMain(m *testing.M) {
	playGraph()
	colltest.Main(open)
	os.Exit(m.Run())
}

// What processes of the suite are told: to sum in a fixed order; another limit.
const (
	envFixed   = "NCCL_TEST_FIXED"
	envTimeout = "NCCL_TEST_TIMEOUT"
)

func options() nccl.Options {
	o := nccl.Options{FixedOrder: os.Getenv(envFixed) != "", Timeout: time.Minute, InitTimeout: 30 * time.Second}
	if d, err := time.ParseDuration(os.Getenv(envTimeout)); err == nil {
		o.Timeout = d
	}
	return o
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
	reduces := sync.OnceValue(func() error { return os.WriteFile(reducing(dir, rank), nil, 0o600) })
	return &owned{c, dev, below, reduces}, nil
}

// reducing is the file of a rank whose process has come to its first all-reduce.
func reducing(dir string, rank int) string { return filepath.Join(dir, fmt.Sprint("reducing ", rank)) }

// owned closes what its Comm stands on, too.
type owned struct {
	*nccl.Comm
	dev     *cuda.Device
	below   collective.Comm
	reduces func() error // is called by who does
}

// Do is that of the Comm.
func (o *owned) Do(ctx context.Context, req collective.Request) error {
	if req.Kind == collective.AllReduce {
		if err := o.reduces(); err != nil {
			return err
		}
	}
	return collective.Do(ctx, o.Comm, req)
}

func (o *owned) Close() error { return errors.Join(o.Comm.Close(), o.dev.Close(), o.below.Close()) }

// member is a rank of a group in this process.
type member struct {
	*nccl.Comm
	dev    *cuda.Device
	memory *cudatest.Memory
	below  *host.Comm
	looked bool // at what Close returns
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

// groups are those that are not ended.
var groups atomic.Int32

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
	groups.Add(1)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			c, err := nccl.New(context.Background(), below[r], devs[r], o(r))
			if errs[r] = err; err != nil {
				return
			}
			memory, err := cudatest.NewMemory(devs[r])
			members[r], errs[r] = &member{Comm: c, dev: devs[r], memory: memory, below: below[r]}, err
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		errs := make([]error, n)
		var wg sync.WaitGroup
		for r, x := range members {
			if x != nil {
				wg.Go(func() { errs[r] = x.end() })
			}
		}
		wg.Wait()
		for r := range n {
			errs = append(errs, below[r].Close(), devs[r].Close())
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if groups.Add(-1) == 0 { // a test may have several
			m.Clean()
		}
	})
	return members, errs
}

// end frees what tests have made, when the Comm is closed.
func (x *member) end() error {
	err := x.Close()
	if x.looked {
		err = nil
	}
	return errors.Join(err, x.memory.Close())
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
			return c.(*member).memory.Alloc(n)
		},
		Wrap: func(c collective.Comm, mem collective.Vec) colltest.Buffer {
			return c.(*member).memory.At(cuda.AddressOf(mem))
		},
		Brief: true, MaxRanks: 5, Also: []int{4, 5},
	}
}

// TestConformance: NCCL's own sums, and those in a fixed order.
func TestConformance(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		if fixed && testing.Short() {
			continue
		}
		t.Run(fmt.Sprintf("fixed=%v", fixed), func(t *testing.T) {
			cudatest.Use(t)
			t.Setenv("EBDOUBLE_DEVICES", "5") // for processes
			if fixed {
				t.Setenv(envFixed, "1")
			}
			f := factory(options())
			f.AnyOrder = !fixed
			colltest.Run(t, f)
		})
	}
}
