package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
)

// heldUpRuns are what two ranks make of runs that are launched step by step, in one of which a
// collective hangs, so that calls of the driver's do not return: its queue is full. between
// is called before each run.
func heldUpRuns(t *testing.T, c Config, between func(rank, run int, p *program)) (errs [2]error, took time.Duration) {
	t.Helper()
	t.Setenv(cudatest.Prefix+"NCCL_HANG", "1:4") // two are of the first run, which waits for each, two of the second
	t.Setenv(cudatest.Prefix+"QUEUE", "1")
	c.Plain, c.Graphs = true, GraphsOff
	var times [2]time.Duration
	onTwoGPUs(t, func(r int, below collective.Comm) error {
		c := c
		c.Ordinal = r
		p, done, err := sharedOver(t.Context(), t, c, below, exec.Options{})
		if err != nil {
			return err
		}
		began := time.Now() // all is compiled
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for n := 0; errs[r] == nil && n < 4; n++ {
			between(r, n, p)
			errs[r] = exec.Run(ctx, p)
		}
		times[r] = time.Since(began)
		return errors.Join(done(), context.Cause(ctx))
	})
	return errs, max(times[0], times[1])
}

// TestHeldUpQueue: ranks that are in calls of the driver's, which do not return behind a
// collective that hangs, are told so after Config.Timeout, though none waits for a run that
// is queued.
func TestHeldUpQueue(t *testing.T) {
	errs, _ := heldUpRuns(t, Config{Timeout: 2 * time.Second}, func(int, int, *program) {})
	for r, err := range errs {
		if err == nil || !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), `the device is still at all-reduce mean f32[1600] "first" after 2s, and all ranks are alive`) {
			t.Errorf("rank %d: got %v", r, err)
		}
	}
}

// TestHeldUpCompile: so are ranks that compile behind such a run, as kernels are timed on the
// streams of the runs.
func TestHeldUpCompile(t *testing.T) {
	t.Setenv(cudatest.Prefix+"NCCL_HANG", "1:2") // of the second run
	onTwoGPUs(t, func(r int, below collective.Comm) (err error) {
		p, done, err := sharedOver(t.Context(), t, Config{Ordinal: r, Graphs: GraphsOff, Timeout: 2 * time.Second}, below, exec.Options{})
		if err != nil {
			return err
		}
		late := time.AfterFunc(time.Minute, func() { below.Abort(errors.New("the ranks wait for ever")) })
		defer late.Stop()
		defer func() { err = errors.Join(err, done()) }()
		if err := errors.Join(exec.Run(t.Context(), p), p.Launch(t.Context())); err != nil {
			return err
		}
		_, err = p.b.Compile(small(t, 3), exec.Options{Name: "other", Comm: p.comm})
		if err == nil || !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), `the device is still at all-reduce mean f32[1600] "first" after 2s`) {
			return fmt.Errorf("rank %d: got %w", r, err)
		}
		return nil
	})
}

// TestHeldUpQueueOfEndedGroup: the end of the group frees such a rank at once.
func TestHeldUpQueueOfEndedGroup(t *testing.T) {
	enough := errors.New("rank 1 has had enough")
	errs, took := heldUpRuns(t, Config{}, func(r, n int, p *program) {
		if r == 1 && n == 2 {
			time.AfterFunc(time.Second, func() { p.comm.Abort(enough) })
		}
	})
	for r, err := range errs {
		if err == nil || !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), enough.Error()) {
			t.Errorf("rank %d: got %v", r, err)
		}
	}
	if took > 20*time.Second {
		t.Error(fmt.Sprint("it took ", took))
	}
}

// TestCloseBehindHang: a program that is closed with a run queued that hangs ends its group
// then, and what it frees does not wait for ever.
func TestCloseBehindHang(t *testing.T) {
	t.Setenv(cudatest.Prefix+"NCCL_HANG", "1:2") // of the second run
	onTwoGPUs(t, func(r int, below collective.Comm) error {
		p, done, err := sharedOver(t.Context(), t, Config{Ordinal: r, Plain: true, Graphs: GraphsOff, Timeout: 2 * time.Second}, below, exec.Options{})
		if err != nil {
			return err
		}
		late := time.AfterFunc(25*time.Second, func() { below.Abort(errors.New("the ranks wait for ever")) })
		defer late.Stop()
		err = errors.Join(exec.Run(t.Context(), p), p.Launch(t.Context()))
		for len(p.queue[0].queued) == 0 { // or it is ended before its collective
			time.Sleep(time.Millisecond)
		}
		err = errors.Join(err, done())
		if !late.Stop() {
			err = errors.Join(err, errors.New("it was not ended before"))
		}
		return err
	})
}

// impatient is a backend that gives a GPU so long, and a program on it that has run once.
func impatient(t *testing.T, c Config, patience time.Duration) (*cudatest.Machine, *Backend, *program) {
	t.Helper()
	m := cudatest.Use(t)
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	b.patience = patience
	p, err := b.Compile(small(t, 2), exec.Options{Name: "small"})
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return m, b, p.(*program)
}

// TestHungGPU: where the GPU itself takes nothing more, so that nothing frees who is in a call of
// the driver's, a run that nobody wants any more ends all the same, and says so; nothing that
// follows waits.
func TestHungGPU(t *testing.T) {
	m, b, p := impatient(t, Config{Plain: true, Graphs: GraphsOff}, 50*time.Millisecond)
	m.Set("QUEUE", "1")
	m.Slow("run:*", 1, 2*hung)
	began := time.Now()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
	const want = "GPU 0 (Double H100) has taken nothing of what is queued for 150ms since: it hangs, and the process must end"
	if err := exec.Run(ctx, p); err == nil || !strings.Contains(err.Error(), `program "small": enough; `+want) {
		t.Errorf("the run: %v", err)
	}
	_, compiled := b.Compile(small(t, 3), exec.Options{Name: "other"})
	for what, err := range map[string]error{"another run": exec.Run(t.Context(), p), "a program": compiled, "the backend's end": b.Close()} {
		if err == nil || !strings.Contains(err.Error(), "GPU 0 (Double H100) hangs") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > hung {
		t.Errorf("it took %v", took)
	}
	if err := released(m, p); err != nil {
		t.Error(err)
	}
	m.Clean()
}

// hung is how long all may take, on any machine, that is not to wait for a GPU that hangs.
const hung = 30 * time.Second

// released has a GPU that hung go on, and gives back what it has kept.
func released(m *cudatest.Machine, p *program) error {
	m.Wake()
	over := make(chan struct{})
	p.b.calls <- func() { close(over) } // behind what is queued
	<-over
	close(p.b.calls)
	<-p.b.done
	return errors.Join(p.release(), p.b.release())
}

// TestHungGPUBehindTiming: so it is where kernels are timed, for which a run waits that nobody
// wants any more, and for who has them timed.
func TestHungGPUBehindTiming(t *testing.T) {
	m, b, p := impatient(t, Config{Graphs: GraphsOff}, 100*time.Millisecond)
	m.Slow("run:*", 1, 2*hung)
	began, memsets := time.Now(), m.Calls("cuMemsetD8Async")
	compiled := make(chan error, 1)
	go func() {
		_, err := b.Compile(small(t, 3), exec.Options{Name: "other"})
		compiled <- err
	}()
	for m.Calls("cuMemsetD8Async") == memsets { // it is timed
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
	if err := exec.Run(ctx, p); err == nil || !strings.Contains(err.Error(), `program "small": enough; GPU 0 (Double H100) has taken nothing`) {
		t.Errorf("the run: %v", err)
	}
	if err := <-compiled; err == nil || !strings.Contains(err.Error(), "GPU 0 (Double H100) hangs") {
		t.Errorf("what is compiled: %v", err)
	}
	if took := time.Since(began); took > hung {
		t.Errorf("it took %v", took)
	}
	if err := errors.Join(p.Close(), released(m, p)); err != nil {
		t.Error(err)
	}
	m.Clean()
}

// TestHungGPUBehindWait: so it is where the driver does not return from the graph of a run
// behind the one that is waited for, whose collective another rank has left: what ends that
// would be done where runs are queued.
func TestHungGPUBehindWait(t *testing.T) {
	m := cudatest.Use(t)
	onTwoGPUs(t, func(r int, below collective.Comm) error {
		p, done, err := sharedOver(t.Context(), t, Config{Plain: true, Ordinal: r}, below, exec.Options{})
		if err != nil {
			return err
		}
		for range firstMeasured + 1 { // each slot has its graph then
			if err := exec.Run(t.Context(), p); err != nil {
				return errors.Join(err, done())
			}
		}
		if r == 1 {
			<-p.failed()
			return done()
		}
		return errors.Join(hungBehindWait(t, m, p), p.Close(), released(m, p))
	})
}

// hungBehindWait queues two runs, of which the first waits for another rank, and the driver
// does not return from the second.
func hungBehindWait(t *testing.T, m *cudatest.Machine, p *program) error {
	p.b.patience = 50 * time.Millisecond
	if err := p.Launch(t.Context()); err != nil {
		return err
	}
	for len(p.queue[0].queued) == 0 {
		time.Sleep(time.Millisecond)
	}
	replays := m.Calls("cuGraphLaunch")
	m.Slow("cuGraphLaunch", 1, 2*hung)
	if err := p.Launch(t.Context()); err != nil {
		return err
	}
	for m.Calls("cuGraphLaunch") == replays {
		time.Sleep(time.Millisecond)
	}
	began, compiled := time.Now(), make(chan error, 1)
	go func() {
		_, err := p.b.Compile(small(t, 3), exec.Options{Name: "other"})
		compiled <- err
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
	if err := p.Wait(ctx); err == nil || !strings.HasPrefix(err.Error(), `program "shared": `) || !strings.Contains(err.Error(), "enough; GPU 0 (Double H100) has taken nothing of what is queued for 150ms since") {
		t.Errorf("the run: %v", err)
	}
	if err := <-compiled; err == nil || !strings.Contains(err.Error(), "GPU 0 (Double H100) hangs") {
		t.Errorf("what is compiled: %v", err)
	}
	if took := time.Since(began); took > hung {
		t.Errorf("it took %v", took)
	}
	return nil
}
