package exectest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// runTrace traces the second of three runs, on two ranks.
func runTrace(t *testing.T, open func(t *testing.T) exec.Backend, dt graph.DType) {
	g, err := parallelStep(dt)
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, comm := range NewGroup(2) {
		be := open(t)
		defer closeBackend(t, be)
		wg.Go(func() {
			if errs[r] = tracedRuns(be, g, dt, comm); errs[r] != nil {
				comm.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// tracedRuns runs g three times and checks what the trace is told.
func tracedRuns(be exec.Backend, g *graph.Graph, dt graph.DType, comm collective.Comm) (err error) {
	vars := be.NewVars()
	if err := errors.Join(vars.Set("w", float(3, 5).Tensor(dt, "collectives", 0)), vars.Set("u", float(5).Tensor(dt, "collectives", 1))); err != nil {
		return err
	}
	reduced, err := be.Connect(context.Background(), comm)
	if err != nil {
		return err
	}
	var events []exec.Event
	asked := 0
	p, err := be.Compile(g, exec.Options{Name: "traced", Vars: vars, Comm: reduced, Trace: func() func(exec.Event) {
		if asked++; asked != 2 {
			return nil
		}
		return func(e exec.Event) { events = append(events, e) }
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var began, ended time.Time
	for run := range 3 {
		start := time.Now()
		if err := exec.Run(context.Background(), p); err != nil {
			return err
		}
		if run == 1 {
			began, ended = start, time.Now()
		}
	}
	if asked != 3 {
		return fmt.Errorf("the trace was asked %d times in three runs", asked)
	}
	return checkTrace(g, events, began, ended)
}

// checkTrace checks the events of a run that lasted from began to ended.
func checkTrace(g *graph.Graph, events []exec.Event, began, ended time.Time) error {
	var want, got []string // labels
	numbers := map[int]exec.Travel{}
	for _, n := range g.Nodes() {
		if label, ok := graph.LabelOf(n.Op); ok {
			want = append(want, label)
		}
	}
	ops, last := 0, began
	for _, e := range events {
		end := e.Start.Add(e.Time)
		if t := e.Travel; t != nil {
			if was, ok := numbers[t.Number]; ok && was != *t {
				return fmt.Errorf("event %+v is of collective %+v, whose number %+v has", e, *t, was)
			}
			numbers[t.Number] = *t
		}
		if e.Kind == "" || e.Name == "" || e.Start.Before(began) || end.After(ended) {
			return fmt.Errorf("event %+v is not of this run, which lasted from %v to %v", e, began, ended)
		}
		if e.Kind == exec.Collective {
			if e.Bytes <= 0 || e.Travel == nil || e.Travel.Label != e.Name {
				return fmt.Errorf("collective %+v moves nothing, or does not say which it is", e)
			}
			got = append(got, e.Name)
			continue
		}
		if e.Start.Before(last) {
			return fmt.Errorf("op %+v begins before the one before it ends, at %v", e, last)
		}
		ops, last = ops+1, end
	}
	if len(numbers) != len(want) {
		return fmt.Errorf("collectives of the trace are numbered %+v, want %d", numbers, len(want))
	}
	slices.Sort(want)
	slices.Sort(got)
	if ops == 0 || len(want) == 0 || !slices.Equal(got, want) {
		return fmt.Errorf("the trace has %d ops and the collectives %q, want %q", ops, got, want)
	}
	return nil
}
