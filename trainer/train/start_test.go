package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/collective/host"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/rendezvous"
	"ebtrain/trainer/run/rundir"
)

// meeting is ranks on hosts of their own that are given one command line, and what they
// agree on; saved are the runs on their disks.
type meeting struct {
	saved  []*rundir.Config
	starts []*start
	errs   []error
	here   []bool       // the error is of that rank's host alone
	sent   atomic.Int64 // bytes that were exchanged
}

// meet has ranks with the runs saved agree on --resume with args.
func meet(t *testing.T, args string, saved ...*rundir.Config) *meeting {
	t.Helper()
	return meetAgain(t, 0, args, saved...)
}

// meetAgain is meet of a job that has been formed again so often.
func meetAgain(t *testing.T, epoch int, args string, saved ...*rundir.Config) *meeting {
	t.Helper()
	m := &meeting{saved: saved, starts: make([]*start, len(saved)), errs: make([]error, len(saved)), here: make([]bool, len(saved))}
	exchanges := host.MemExchange(len(saved))
	line := strings.Fields("--resume --out " + filepath.Join(t.TempDir(), "a") + " " + args)
	ctx, cancel := context.WithCancelCause(t.Context()) // of one rank's error all hear
	defer cancel(nil)
	var wg sync.WaitGroup
	for r := range saved {
		wg.Go(func() {
			s, err := newStart(env.Worker{Size: len(saved), Restart: epoch}, line, line, io.Discard)
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
				cancel(err)
				return
			}
			s.saved, m.starts[r] = saved[r], s
			swap := func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
				m.sent.Add(int64(len(mine)))
				if len(mine) > rendezvous.MaxBlob {
					return nil, fmt.Errorf("exchange %q: %d bytes are too many", name, len(mine))
				}
				return exchanges[r](ctx, name, mine)
			}
			fail := func(err error) error { return err }
			failHere := func(err error) error { m.here[r] = true; return err }
			if m.errs[r] = s.agree(ctx, r, swap, fail, failHere); m.errs[r] != nil {
				cancel(m.errs[r])
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return m
}

// theSame checks that all ranks go on, with the flags of want.
func (m *meeting) theSame(t *testing.T, want map[string]string) {
	t.Helper()
	for r, s := range m.starts {
		if m.errs[r] != nil {
			t.Errorf("rank %d: %v", r, m.errs[r])
			continue
		}
		flags := cliflag.Values(s.fs)
		for name, value := range want {
			if flags[name] != value {
				t.Errorf("rank %d has --%s %s, want %s", r, name, flags[name], value)
			}
		}
		if s.src == nil || (s.o.was != nil) != (m.saved[r] != nil) {
			t.Errorf("rank %d: data %v, begun before %v", r, s.src, s.o.was != nil)
		}
	}
}

// saying checks that all ranks have the same error.
func (m *meeting) saying(t *testing.T, want string) {
	t.Helper()
	for r, err := range m.errs {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: got %v, want %q", r, err, want)
		}
	}
}

// aRun is the config.json of a run that was begun.
func aRun(t *testing.T) *rundir.Config {
	t.Helper()
	out := filepath.Join(t.TempDir(), "a")
	begun(t, out)
	c, err := rundir.ReadConfig(out)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// later is the run c after another start, with other flags.
func later(c *rundir.Config, flags map[string]string) *rundir.Config {
	next := *c
	next.Flags = maps.Clone(c.Flags)
	maps.Copy(next.Flags, flags)
	next.Resumed = append(next.Resumed, rundir.Resume{Step: 2, Time: c.LastStart().Add(time.Hour)})
	return &next
}

// A host that lacks the run is sent it, however large that is: a vocabulary is megabytes.
// Where none lacks it, it is not sent at all.
func TestRunIsSentToWhoLacksIt(t *testing.T) {
	c := aRun(t)
	c.Args = []string{strings.Repeat("word ", 3*rendezvous.MaxBlob/5)}
	for _, saved := range [][]*rundir.Config{{c, c}, {c, nil, c}, {nil, c}} {
		m := meet(t, "--steps 7", saved...)
		m.theSame(t, map[string]string{"steps": "7", "width": "4", "samples": "2"})
		if got, lacking := m.sent.Load(), len(saved) != 2 || saved[0] == nil; (got > rendezvous.MaxBlob) != lacking || got > 4*rendezvous.MaxBlob {
			t.Errorf("of %d ranks, some lacking it: %v: %d bytes were sent", len(saved), lacking, got)
		}
	}
}

// What is typed beside --resume means the same whether a host has the run or not: to say
// where the data are does not begin another one, nor is it judged by that one's defaults.
func TestTypedBesideResume(t *testing.T) {
	c := later(aRun(t), map[string]string{"steps": "900"})
	for args, want := range map[string]map[string]string{
		"--data synth:train=32":   {"data": "synth:train=32", "width": "4"},
		"--profile 700":           {"profile": "700", "steps": "900"},
		"--latent 3 --lr 0.00030": {"latent": "3"},
	} {
		meet(t, args, c, nil).theSame(t, want)
		meet(t, args, nil, c).theSame(t, want)
	}
	meet(t, "--lr 1", c, nil).saying(t, "has --lr 0.0003, not --lr 1: ")
	meet(t, "--stps 5", nil, c).saying(t, "did you mean --steps?")
}

// Only where no host has the run one is begun, if that is what the flags say.
func TestNothingToResume(t *testing.T) {
	meet(t, "--width 4 --latent 3 --data synth:train=32", nil, nil).theSame(t, map[string]string{"width": "4"})
	meet(t, "--data synth:train=32", nil, nil).theSame(t, nil)
	meet(t, "--steps 300", nil, nil).saying(t, "holds no run to resume")
	meet(t, "--batch 0 --steps 300", nil, nil).saying(t, "want --batch of at least 1")
}

// A host that was absent when the run went on with other flags takes those; what is its own,
// as where its data are, stays.
func TestNewestFlagsCount(t *testing.T) {
	old := aRun(t)
	old.Flags["prefetch"], old.Flags["data"] = "0", "synth:train=32,val=8"
	now := later(old, map[string]string{"steps": "900", "ckpt-every": "7", "prefetch": "3", "data": "synth:train=32"})
	for _, saved := range [][]*rundir.Config{{old, now}, {now, old, nil}, {old, old, now}} {
		m := meet(t, "--profile 700", saved...)
		m.theSame(t, map[string]string{"steps": "900", "ckpt-every": "7"})
		for r, s := range m.starts {
			if m.errs[r] != nil {
				continue // theSame has said it
			}
			if want := saved[r] == old; (s.o.prefetch == 0) != want || (s.o.data == old.Flags["data"]) != want {
				t.Errorf("rank %d has --prefetch %d --data %s", r, s.o.prefetch, s.o.data)
			}
		}
	}
}

// Hosts that have different runs are told how these differ.
func TestDifferentRuns(t *testing.T) {
	one, other := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "a")
	begun(t, one)
	begun(t, other, "--seed", "7")
	a, err := rundir.ReadConfig(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := rundir.ReadConfig(other)
	if err != nil {
		t.Fatal(err)
	}
	meet(t, "", &a, &b).saying(t, "--seed is 1 on rank 0 and 7 on rank 1: ")
}

// A host that comes later to a job and has another run is told so alone, however new that is.
func TestComesLaterWithAnotherRun(t *testing.T) {
	one := aRun(t)
	other := filepath.Join(t.TempDir(), "a")
	begun(t, other, "--seed", "7")
	b, err := rundir.ReadConfig(other)
	if err != nil {
		t.Fatal(err)
	}
	for _, theirs := range []*rundir.Config{&b, later(&b, nil)} {
		for _, saved := range [][]*rundir.Config{{one, theirs}, {one, nil, one, theirs}} {
			m, last := meetAgain(t, 1, "", saved...), len(saved)-1
			for r, here := range m.here {
				if err := m.errs[r]; err == nil || here != (r == last) || here && !strings.HasSuffix(err.Error(), "a holds another run than this job's: on this host, move it away and start the launcher again") {
					t.Errorf("rank %d of %d: %v, of its host alone: %v", r, len(saved), err, here)
				}
			}
		}
	}
}

// So is one on which the data are missing.
func TestComesLaterWithoutData(t *testing.T) {
	c := aRun(t)
	m := meetAgain(t, 1, "--data "+filepath.Join(t.TempDir(), "none"), c, nil)
	if m.here[0] || !m.here[1] || m.errs[1] == nil {
		t.Errorf("%v, of their host alone: %v", m.errs, m.here)
	}
}

// A later epoch's --resume, which nobody typed, is no mistake where there is no run yet: its
// ranks may have died before they made one.
func TestLaterEpochWithoutRun(t *testing.T) {
	typed := strings.Fields("--steps 300 --out " + filepath.Join(t.TempDir(), "a"))
	for epoch, args := range [][]string{append([]string{"--resume"}, typed...), append([]string{"--resume"}, typed...), typed} {
		w := env.Worker{Group: fmt.Sprint("job-12-e", epoch), Restart: epoch}
		line, err := goOn(w, args)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newStart(w, args, line, io.Discard)
		if (err == nil) != (epoch == 2) || err != nil && !strings.Contains(err.Error(), "holds no run to resume") || !s.o.resume {
			t.Errorf("epoch %d: %v: %v", epoch, args, err)
		}
	}
}
