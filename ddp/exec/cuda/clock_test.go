package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
)

// clockedReplays says whether timed runs are replayed.
func (p *program) clockedReplays() bool {
	return slices.ContainsFunc(p.slots, func(s *slot) bool { return s.clocked.replay != nil })
}

// TestTimedRunsQueued: each of two timed runs that are queued is told with its own times,
// alone and on two ranks, replayed and launched, on streams that are held up at random.
func TestTimedRunsQueued(t *testing.T) {
	t.Setenv(cudatest.Prefix+"DELAY", "2000")
	for _, graphs := range []Graphs{GraphsOn, GraphsOff} {
		t.Run(fmt.Sprint("alone, graphs ", graphs), func(t *testing.T) {
			m := cudatest.Use(t)
			if err := timedQueue(t.Context(), t, Config{Graphs: graphs}, nil); err != nil {
				t.Error(err)
			}
			m.Clean()
		})
		t.Run(fmt.Sprint("two ranks, graphs ", graphs), func(t *testing.T) {
			onTwoGPUs(t, func(r int, below collective.Comm) error {
				return timedQueue(t.Context(), t, Config{Graphs: graphs, Ordinal: r}, below)
			})
		})
	}
}

// timedQueue keeps the queue of a traced and profiled program full, and holds its runs'
// events to what they promise: the first of a run begins when the last of the run before
// has ended.
func timedQueue(ctx context.Context, t *testing.T, c Config, below collective.Comm) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c.Plain, c.Lanes = true, 3
	var told []exec.Event
	p, done, err := sharedOver(ctx, t, c, below, exec.Options{Profile: true, Trace: func() func(exec.Event) {
		return func(e exec.Event) {
			if e.Kind != exec.Collective {
				told = append(told, e)
			}
		}
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var ended time.Time
	events := 0
	for n := range 4 * depth {
		for i := range p.Input("x").F32() {
			p.Input("x").F32()[i] = float32(i%7) / 70
		}
		if err := p.Launch(ctx); err != nil {
			return fmt.Errorf("run %d: %w", n, err)
		}
		if n%depth == 0 {
			continue
		}
		for range depth {
			told = nil
			if err := p.Wait(ctx); err != nil {
				return fmt.Errorf("run %d: %w", n, err)
			}
			if events = max(events, len(told)); len(told) != events || told[0].Start.Before(ended) {
				return fmt.Errorf("run %d has %d events, want %d, and begins %v after the one before", n, len(told), events, told[0].Start.Sub(ended))
			}
			for i, e := range told[1:] {
				if e.Start.Before(told[i].Start.Add(told[i].Time)) {
					return fmt.Errorf("run %d: %s begins before %s ends", n, e.Name, told[i].Name)
				}
			}
			last := told[len(told)-1]
			ended = last.Start.Add(last.Time)
		}
	}
	return nil
}
