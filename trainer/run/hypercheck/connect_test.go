package hypercheck

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// connecting is a backend whose programs reduce over another Comm than the ranks
// talk over.
type connecting struct {
	exec.Backend
	made     *reduced
	connects *atomic.Int64
}

type reduced struct{ collective.Comm }

func (c *connecting) Connect(_ context.Context, host collective.Comm) (collective.Comm, error) {
	c.connects.Add(1)
	c.made = &reduced{host}
	return c.made, nil
}

func (c *connecting) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	if o.Comm != nil && o.Comm != collective.Comm(c.made) {
		return nil, errors.New("a program reduces over a Comm that the backend has not made")
	}
	return c.Backend.Compile(g, o)
}

// Programs reduce over what each rank's backend connects.
func TestConnect(t *testing.T) {
	var connects atomic.Int64
	c := check(toy{steps: 2})
	c.Backend = func() (exec.Backend, error) { return &connecting{Backend: ref.New(), connects: &connects}, nil }
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if n := connects.Load(); n != alone {
		t.Errorf("%d ranks have connected, want %d", n, alone)
	}
}
