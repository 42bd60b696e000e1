package ref

import (
	"context"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// Backend is the reference backend. The zero Backend is ready for use.
type Backend struct{}

// New returns the reference backend.
func New() *Backend { return &Backend{} }

// Name is "ref".
func (b *Backend) Name() string { return "ref" }

// Connect is host: programs reduce in host memory.
func (b *Backend) Connect(_ context.Context, host collective.Comm) (collective.Comm, error) {
	return host, nil
}

// NewVars returns an empty set of variables.
func (b *Backend) NewVars() exec.Vars { return &exec.HostVars{} }

// Compile makes a program that interprets the live nodes of g.
func (b *Backend) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	return compile(g, o)
}

// Close does nothing: the backend holds no resources.
func (b *Backend) Close() error { return nil }
