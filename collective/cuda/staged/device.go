package staged

import (
	"context"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/host"
)

// device carries out what was started, when the ranks have agreed on it.
type device struct{ *Comm }

var _ host.Device = device{}

// Alloc is Comm.Alloc.
func (d device) Alloc(_ *host.Inside, n int) (collective.Vec, error) {
	p, err := d.dev.Alloc(int64(n))
	if err != nil {
		return collective.Vec{}, err
	}
	d.memory = append(d.memory, p)
	if err := d.stream.Memset(p, 0, int64(n)); err != nil {
		return collective.Vec{}, err
	}
	return p.Vec(n), d.stream.Sync(d.failed)
}

// Run carries out req piece by piece: of the whole vector, or of all its parts.
func (d device) Run(in *host.Inside, req collective.Request) error {
	size := req.Vec.Type.Size()
	parts := 1
	if req.Kind == collective.ReduceScatter || req.Kind == collective.AllGather {
		parts = in.Size()
	}
	total := req.Vec.Len / parts
	most := min(total, len(d.stage.Bytes())/size/parts)
	for lo := 0; lo < total; lo += most {
		p := piece{d.Comm, in, req, parts, total, lo, min(most, total-lo)}
		if err := p.run(); err != nil {
			return err
		}
	}
	return nil
}

// piece is n elements, from lo on, of each part of total elements of a vector.
type piece struct {
	*Comm
	in    *host.Inside
	req   collective.Request
	parts int
	total int
	lo, n int
}

func (p piece) run() error {
	rank := p.in.Rank()
	for q := range p.parts {
		if p.brings(q, rank) {
			if err := p.copyOut(q); err != nil {
				return err
			}
		}
	}
	if err := p.stream.Sync(p.failed); err != nil {
		return err
	}
	bytes := p.stage.Bytes()[:p.parts*p.n*p.req.Vec.Type.Size()]
	req := p.req
	req.Vec = collective.VecOf(bytes).As(req.Vec.Type)
	if err := p.in.Do(context.Background(), req); err != nil {
		return err
	}
	for q := range p.parts {
		if p.takes(q, rank) {
			if err := p.copyIn(q); err != nil {
				return err
			}
		}
	}
	return p.stream.Sync(p.failed)
}

// brings says whether others need what this rank has in part q.
func (p piece) brings(q, rank int) bool {
	switch p.req.Kind {
	case collective.AllGather:
		return q == rank
	case collective.Broadcast:
		return rank == p.req.Root
	}
	return true
}

// takes says whether this rank gets part q.
func (p piece) takes(q, rank int) bool {
	switch p.req.Kind {
	case collective.AllGather:
		return q != rank
	case collective.Broadcast:
		return rank != p.req.Root
	case collective.ReduceScatter:
		return q == rank
	}
	return true
}

func (p piece) copyOut(q int) error {
	at, off, n := p.where(q)
	return p.stream.CopyOut(p.stage, off, at, n)
}

func (p piece) copyIn(q int) error {
	at, off, n := p.where(q)
	return p.stream.CopyIn(at, p.stage, off, n)
}

// where is part q's piece on the device and on the stage, in bytes.
func (p piece) where(q int) (at cuda.Ptr, off, n int) {
	size := p.req.Vec.Type.Size()
	return cuda.AddressOf(p.req.Vec) + cuda.Ptr((q*p.total+p.lo)*size), q * p.n * size, p.n * size
}
