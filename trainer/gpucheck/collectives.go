package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/colltest"
	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/cuda/staged"
	"ebtrain/collective/host"
	"ebtrain/collective/nccl"
	"ebtrain/ddp/exec/cuda"
)

// collectives are the checks of part b that are about collectives alone: package
// colltest, by NCCL where each rank in this process has a GPU of its own, staged with
// several on one; ranks that die; and what a rank that is a process can do of it.
func collectives(ctx context.Context, r *report) (err error) {
	for _, t := range []cuda.Transport{cuda.TransportStaged, cuda.TransportNCCL} {
		most := 4
		if t == cuda.TransportNCCL {
			most = min(most, len(r.Devices))
		}
		err = errors.Join(err, r.do(ctx, "b", fmt.Sprintf("colltest, %s, 1 to %d ranks in a process", transports[t], most), func() (string, map[string]any, error) {
			return suite(ctx, task{Tests: groupOf, Transport: t, Most: most})
		}))
		for _, ranks := range []int{2, 4} {
			err = errors.Join(err, r.do(ctx, "b", fmt.Sprintf("colltest, %s, %d processes %s", transports[t], ranks, onOneGPU), func() (string, map[string]any, error) {
				_, err := r.sharing(ctx, task{Ranks: ranks, Transport: t, Suite: true})
				return "", nil, err
			}))
		}
	}
	return err
}

// stack is a rank's Comm over a GPU's memory, with what it stands on.
type stack struct {
	collective.Comm
	dev    *driver.Device
	memory *cudatest.Memory
	below  collective.Comm
}

// pile makes the Comm of a rank on a GPU, over that of the hosts, which it closes with
// all else.
func pile(ctx context.Context, t cuda.Transport, below collective.Comm, ordinal int) (s *stack, err error) {
	s = &stack{below: below}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	if s.dev, err = driver.OpenDevice(ordinal); err != nil {
		return s, err
	}
	if t == cuda.TransportNCCL {
		var c *nccl.Comm
		if c, err = nccl.New(ctx, below, s.dev, nccl.Options{Timeout: time.Minute, InitTimeout: time.Minute}); err != nil {
			return s, err
		}
		s.Comm = c
	} else {
		var c *staged.Comm
		if c, err = staged.New(ctx, below, s.dev, staged.Options{Timeout: time.Minute}); err != nil {
			return s, err
		}
		s.Comm = c
	}
	s.memory, err = cudatest.NewMemory(s.dev)
	return s, err
}

// end closes all, from the top.
func (s *stack) end() error {
	var errs []error
	if s.Comm != nil {
		errs = append(errs, s.Comm.Close())
	}
	if s.memory != nil {
		errs = append(errs, s.memory.Close())
	}
	if s.dev != nil {
		errs = append(errs, s.dev.Close())
	}
	return errors.Join(append(errs, s.below.Close())...)
}

// mortal is a stack of a process, whose Close is the end.
type mortal struct{ *stack }

func (m mortal) Close() error { return m.end() }

// envTransport tells processes of the suite their transport.
const envTransport = "GPUCHECK_TRANSPORT"

// openProcess joins a group of processes that share the first GPU.
func openProcess(ctx context.Context, rank, size int, dir string) (collective.Comm, error) {
	t := cuda.TransportStaged
	if os.Getenv(envTransport) == transports[cuda.TransportNCCL] {
		t = cuda.TransportNCCL
		if err := hostOfItsOwn(rank); err != nil {
			return nil, err
		}
	}
	below, err := meet(ctx, task{Rank: rank, Ranks: size, Meet: dir})
	if err != nil {
		return nil, err
	}
	s, err := pile(ctx, t, below, 0)
	if err != nil {
		return nil, err
	}
	return mortal{s}, nil
}

// hostOfItsOwn makes NCCL take this process for a host of its own: it refuses a GPU to
// two ranks of a host.
func hostOfItsOwn(rank int) error {
	var err error
	for name, value := range map[string]string{"NCCL_HOSTID": fmt.Sprintf("gpucheck-%d", rank), "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo",
		"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return err
}

// conform is the part of the suite that a rank can do which is a process.
func conform(ctx context.Context, t task) error {
	below, err := meet(ctx, t)
	if err != nil {
		return err
	}
	s, err := pile(ctx, t.Transport, below, 0)
	if err != nil {
		return err
	}
	if err = colltest.Rank(s, buffers()); err != nil {
		s.Abort(err)
	}
	return errors.Join(err, s.end())
}

// factory makes groups of goroutines: by NCCL on a GPU each, staged on the first.
func factory(t cuda.Transport, most int) colltest.Factory {
	f := buffers()
	f.MaxRanks, f.Brief, f.Open = most, true, openProcess
	f.AnyOrder = t == cuda.TransportNCCL // its sums are rounded as its rings and trees go
	f.New = func(tt testing.TB, n int) []collective.Comm {
		below, err := host.NewLocal(context.Background(), n)
		if err != nil {
			tt.Fatal(err)
		}
		comms, errs := make([]collective.Comm, n), make([]error, n)
		var wg sync.WaitGroup
		for r := range n {
			ordinal := 0
			if t == cuda.TransportNCCL {
				ordinal = r
			}
			wg.Go(func() {
				s, err := pile(context.Background(), t, below[r], ordinal)
				if errs[r] = err; err != nil {
					return
				}
				comms[r] = s
				tt.Cleanup(func() { // after the suite has closed the Comm
					if err := s.end(); err != nil {
						tt.Error(err)
					}
				})
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			tt.Fatal(err)
		}
		return comms
	}
	return f
}

// buffers is a Factory that makes buffers on a stack's GPU.
func buffers() colltest.Factory {
	return colltest.Factory{
		Memory: func(c collective.Comm, n int) (colltest.Buffer, error) { return c.(*stack).memory.Alloc(n) },
		Wrap: func(c collective.Comm, mem collective.Vec) colltest.Buffer {
			return c.(*stack).memory.At(driver.AddressOf(mem))
		},
	}
}
