//go:build cgo

package nccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/colltest"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/host"
	"ebtrain/collective/nccl"
)

// all demands that every rank got an error that says want.
func all(t *testing.T, errs []error, want string) {
	t.Helper()
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: got %v, want an error that says %q", r, err, want)
		}
	}
}

func same(o nccl.Options) func(int) nccl.Options { return func(int) nccl.Options { return o } }

// limit is what hangs may take: more than anything else does on a busy machine.
const limit = 2 * time.Second

// TestSharedGPU: two ranks on a GPU, or on parts of one, are refused before NCCL is begun,
// and the group of the hosts goes on.
func TestSharedGPU(t *testing.T) {
	for _, c := range []struct{ devices, parts, want string }{
		{"2", "0", "ranks 0 and 2 are both on the GPU at "},
		{"3", "2", "ranks 0 and 1 are on parts of one GPU (MIG), the one at "},
	} {
		m := cudatest.Use(t)
		m.Set("DEVICES", c.devices)
		m.Set("PARTS", c.parts)
		errs := refused(t, 3)
		all(t, errs, c.want)
		for _, err := range errs {
			if !errors.Is(err, nccl.ErrShared) {
				t.Errorf("got %v, want ErrShared", err)
			}
		}
		m.Clean()
	}
}

// refused are the errors of n ranks' starts, which leave the group of the hosts as it was.
func refused(t *testing.T, n int) []error {
	t.Helper()
	below, err := host.NewLocal(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	list, err := cuda.Devices()
	if err != nil {
		t.Fatal(err)
	}
	errs, done := make([]error, n), make(chan error, n)
	for r, g := range below {
		go func() {
			done <- func() error {
				dev, err := cuda.OpenDevice(r % len(list))
				if err != nil {
					return err
				}
				_, errs[r] = nccl.New(t.Context(), g, dev, nccl.Options{})
				sum := []int64{int64(r)}
				err = collective.Do(t.Context(), g, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(sum)})
				return errors.Join(err, dev.Close(), g.Close())
			}()
		}()
	}
	for range below {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return errs
}

// TestInitFails: whatever fails on one rank while NCCL starts is told to all.
func TestInitFails(t *testing.T) {
	for _, call := range []string{"ncclGetUniqueId", "ncclInit", "ncclCommInitRankConfig", "ncclCommGetAsyncError", "cuStreamCreateWithPriority", "cuMemHostAlloc", "cuModuleLoadData", "cuCtxSetCurrent"} {
		t.Run(call, func(t *testing.T) {
			m := cudatest.Use(t)
			m.Set("DEVICES", "3")
			m.Fail(call, 1, 2)
			start := time.Now()
			_, errs := attemptOn(t, m, 3, func(r int) int { return r }, same(options()))
			says := "the start on rank "
			switch call { // what watches the communicator may see it first
			case "ncclInit":
				says = "init was made to fail"
			case "ncclCommGetAsyncError":
				says = "ncclCommGetAsyncError: unhandled system error (2)"
			}
			all(t, errs, says)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestInitHangs: a rank whose NCCL does not connect ends the start of all.
func TestInitHangs(t *testing.T) {
	m := cudatest.Use(t)
	m.Set("DEVICES", "3")
	m.Slow("ncclInit", 1, limit+limit/2)
	o := options()
	o.InitTimeout = limit
	_, errs := attemptOn(t, m, 3, func(r int) int { return r }, same(o))
	all(t, errs, "NCCL has not connected all ranks within 2s")
}

// TestInitSlow: a rank may join long after the others, as long as InitTimeout is not over.
func TestInitSlow(t *testing.T) {
	m := cudatest.Use(t)
	m.Set("DEVICES", "3")
	m.Slow("ncclCommGetAsyncError", 1, limit/4)
	_, errs := attemptOn(t, m, 3, func(r int) int { return r }, same(nccl.Mustering(options(), limit/40)))
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestInitMisses: who does not come to the start is named.
func TestInitMisses(t *testing.T) {
	m := cudatest.Use(t)
	m.Set("DEVICES", "3")
	below, err := host.NewLocal(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	for _, r := range []int{0, 2} {
		go func() {
			dev, err := cuda.OpenDevice(r)
			if err == nil {
				_, err = nccl.New(t.Context(), below[r], dev, nccl.Options{InitTimeout: limit})
				err = errors.Join(err, dev.Close())
			}
			errs <- err
		}()
	}
	all(t, []error{<-errs, <-errs}, `rank 1 has not come to barrier "the start of NCCL" within 2s`)
	for _, g := range below {
		_ = g.Close() // of a group that has failed
	}
	m.Clean()
}

// TestLate: who does not come to a collective is named.
func TestLate(t *testing.T) {
	o := options()
	o.Timeout = limit
	together(t, group(t, 3, o), func(x *member) error {
		err := func() error {
			if x.Rank() == 1 {
				<-x.Failed()
				return x.Failure()
			}
			return collective.Do(t.Context(), x, collective.Request{Kind: collective.Barrier, Label: "dinner"})
		}()
		if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), `rank 1 has not come to barrier "dinner" within 2s`) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// TestHangInside: an operation that hangs inside NCCL, on one rank or between
// ranks that all live, ends after its time.
func TestHangInside(t *testing.T) {
	t.Setenv("EBDOUBLE_NCCL_HANG", "1:0")
	o := options()
	o.Timeout = limit
	together(t, group(t, 3, o), func(x *member) error {
		mem, err := x.Alloc(1 << 16)
		if err == nil {
			err = collective.Do(t.Context(), x, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32), Label: "sad"})
		}
		if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), `all-reduce sum f32[16384] "sad" is not complete on any rank after 2s, and all ranks are alive`) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// TestHangOfOne: an operation that hangs on one rank is said to hang there, also where
// another rank needs nothing of it and has gone on.
func TestHangOfOne(t *testing.T) {
	for _, how := range []string{"started", "enqueued"} {
		t.Run(how, func(t *testing.T) {
			t.Setenv("EBDOUBLE_NCCL_HANG", "1:0")
			o := options()
			o.Timeout = limit
			together(t, group(t, 2, o), func(x *member) error {
				p := &program{member: x}
				err := func() (err error) {
					if p.mem, err = x.Alloc(4096); err != nil {
						return err
					}
					req := collective.Request{Kind: collective.Broadcast, Vec: p.mem.As(collective.F32), Label: "weights"}
					if how == "started" {
						err = collective.Do(t.Context(), x, req)
					} else {
						err = p.pass(t.Context(), req)
					}
					if err == nil { // on the root
						time.Sleep(limit / 2) // so that its own time is not over first
						req.Kind, req.Op, req.Label = collective.AllReduce, collective.Sum, "gradient"
						err = collective.Do(t.Context(), x, req)
					}
					return err
				}()
				if !errors.Is(err, collective.ErrAborted) || errors.Is(err, collective.ErrMismatch) ||
					!strings.Contains(err.Error(), `rank 1 has come to the roll call, broadcast from 0 f32[1024] "weights" being late, and rank 0 to all-reduce sum f32[1024] "gradient" `) ||
					!strings.Contains(err.Error(), "the device of rank 1 or a link to it hangs") {
					return fmt.Errorf("got %w, want an error that says what hangs on rank 1", err)
				}
				return p.close()
			})
		})
	}
}

// pass enqueues req on a stream of its own and waits for it.
func (p *program) pass(ctx context.Context, req collective.Request) (err error) {
	if err := p.Agree(ctx, []collective.Request{req}); err != nil {
		return err
	}
	if p.s, err = p.dev.NewStream("program", 0); err != nil {
		return err
	}
	if p.over, err = p.dev.NewEvent(false); err != nil {
		return err
	}
	if err := p.Enqueue(p.s, req); err != nil {
		return err
	}
	return errors.Join(p.s.Record(p.over), p.Await(ctx, p.over))
}

// TestNoMemory: memory that NCCL does not give is called too little only where it is.
func TestNoMemory(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int
		full  bool
	}{"something else": {4096, false}, "too little": {1 << 40, true}} {
		t.Run(name, func(t *testing.T) {
			m := cudatest.Use(t)
			x := group(t, 1, options())[0]
			if !test.full {
				m.Fail("ncclMemAlloc", 1, 1)
			}
			x.looked = true
			_, err := x.Alloc(test.bytes)
			if full, ok := errors.AsType[*cuda.OutOfMemory](err); ok != test.full || ok && full.Asked != int64(test.bytes) {
				t.Errorf("got %v (%+v), want that of memory: %v", err, full, test.full)
			}
			if err == nil || !strings.Contains(err.Error(), "ncclMemAlloc: unhandled cuda error (1)") {
				t.Errorf("got %v, want an error that says what NCCL has said", err)
			}
		})
	}
}

// TestAsynchronousError: what NCCL's own threads find out ends the group.
func TestAsynchronousError(t *testing.T) {
	t.Setenv("EBDOUBLE_NCCL_FAIL", "2:1")
	together(t, group(t, 3, options()), func(x *member) error {
		mem, err := x.Alloc(1 << 16)
		for range 3 {
			if err == nil {
				err = collective.Do(t.Context(), x, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: mem.As(collective.F32)})
			}
		}
		if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "remote process exited or there was a network error (6): connection to a peer was reset") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// TestNVLS: it is off unless it is asked for, by the options or by the user, whose word counts;
// where it is on, ranks may meet in captures.
func TestNVLS(t *testing.T) {
	const variable = "NCCL_NVLS_ENABLE"
	seen := filepath.Join(t.TempDir(), "seen")
	t.Setenv("EBDOUBLE_NCCL_NVLS", seen)
	t.Setenv("EBDOUBLE_DEVICES", "2") // of all groups
	for _, test := range []struct {
		asked       bool
		value, want string
	}{{false, "", "0"}, {true, "", "unset"}, {false, "1", "1"}, {true, "0", "0"}} {
		t.Setenv(variable, test.value)
		if test.value == "" {
			if err := os.Unsetenv(variable); err != nil {
				t.Fatal(err)
			}
		}
		o := options()
		o.NVLS = test.asked
		meets := group(t, 2, o)[0].Meets()
		if got, err := os.ReadFile(seen); err != nil || string(got) != test.want || meets != (test.want != "0") {
			t.Errorf("with NVLS %v and %s=%q NCCL saw %q, want %q; ranks meet in captures: %v", test.asked, variable, test.value, got, test.want, meets)
		}
	}
}

// TestStoppedProcess: a process that stands still inside NCCL is named by all
// others, who end.
func TestStoppedProcess(t *testing.T) {
	cudatest.Use(t)
	t.Setenv("EBDOUBLE_DEVICES", "3")
	t.Setenv(envTimeout, "2s")
	dir := t.TempDir()
	cmds := colltest.Spawn(t, 3, dir, false)
	for r := range cmds {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(reducing(dir, r)); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("rank %d has come to no all-reduce: %v", r, err)
			}
		}
	}
	if err := cmds[1].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, r := range []int{0, 2} {
		if err := cmds[r].Wait(); err != nil {
			t.Errorf("rank %d ended with %v", r, err)
		}
		out := cmds[r].Stdout.(*bytes.Buffer).String()
		if !strings.Contains(out, "rank 1 has not come to ") {
			t.Errorf("rank %d does not name rank 1: %s", r, out)
		}
	}
}
