package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/cuda/cublaslt"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// productRate is how many operations a second the best of cublasLt's first candidates
// does in a product of large random matrices. (Zeros would be faster.)
func productRate(ordinal, n int, p cuda.Precision) (best float64, err error) {
	d, err := driver.OpenDevice(ordinal)
	if err != nil {
		return 0, err
	}
	keep := func(f func() error) { err = errors.Join(err, f()) }
	defer func() { keep(d.Close) }()
	if err := multiplies(d, typesOf(p)); err != nil {
		return 0, err
	}
	s, err := d.NewStream("products", 0)
	if err != nil {
		return 0, err
	}
	defer func() { keep(s.Close) }()
	lib, err := cublaslt.New(d, 256<<20)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errSkipped, err)
	}
	defer func() { keep(lib.Close) }()
	q := linalg.Product{Batch: 1, M: n, N: n, K: n, T: typesOf(p)}
	list, err := lib.Prepare(q, 4)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, c := range list {
			keep(c.Close)
		}
	}()
	var at [3]driver.Ptr // dst, a, b
	for i := range at {
		if at[i], err = random(d, s, n*n, q.T.A); err != nil {
			return 0, err
		}
		defer func() { keep(func() error { return d.Free(at[i]) }) }()
	}
	var marks [2]*driver.Event
	for i := range marks {
		if marks[i], err = d.NewEvent(true); err != nil {
			return 0, err
		}
		defer func() { keep(marks[i].Close) }()
	}
	for _, c := range list {
		took, err := timeOf(c, d, s, linalg.Operands{Dst: at[0], A: at[1], B: at[2]}, marks)
		if err != nil {
			return 0, err
		}
		best = max(best, float64(q.Flops())*products/took.Seconds())
	}
	return best, nil
}

// typesOf are the types of a product in a precision.
func typesOf(p cuda.Precision) linalg.Types {
	switch p {
	case cuda.TF32:
		return linalg.Types{Dst: graph.F32, A: graph.F32, B: graph.F32, Math: linalg.TF32}
	case cuda.BF16:
		return linalg.Types{Dst: graph.BF16, A: graph.BF16, B: graph.BF16, Math: linalg.BF16}
	}
	return linalg.Types{Dst: graph.F32, A: graph.F32, B: graph.F32, Math: linalg.Full}
}

// products is how many of a candidate's are timed, after one that is not.
const products = 10

// timeOf is how long they take.
func timeOf(c linalg.Candidate, d *driver.Device, s *driver.Stream, x linalg.Operands, marks [2]*driver.Event) (took time.Duration, err error) {
	work, err := d.Alloc(c.Workspace())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Free(work)) }()
	run := func() error { return c.Enqueue(s, x, work) }
	err = errors.Join(run(), s.Record(marks[0]))
	for range products {
		err = errors.Join(err, run())
	}
	if err = errors.Join(err, s.Record(marks[1]), s.Sync(context.Background())); err != nil {
		return 0, err
	}
	return d.Elapsed(marks[0], marks[1])
}

// random is n normal numbers on the device, of which each megabyte is the same.
func random(d *driver.Device, s *driver.Stream, n int, t graph.DType) (at driver.Ptr, err error) {
	const tile = 1 << 20
	p, err := d.AllocPinned(tile)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Free()) }()
	u := make([]float64, tile/t.Size())
	philox.Name{Seed: 1, Purpose: philox.Testing}.Normal(u)
	for i, v := range u {
		if t == graph.BF16 {
			binary.LittleEndian.PutUint16(p.Bytes()[2*i:], collective.ToBF16(float32(v)))
		} else {
			binary.LittleEndian.PutUint32(p.Bytes()[4*i:], math.Float32bits(float32(v)))
		}
	}
	bytes := n * t.Size()
	if at, err = d.Alloc(int64(bytes)); err != nil {
		return 0, err
	}
	for off := 0; off < bytes; off += tile {
		if err := s.CopyIn(at+driver.Ptr(off), p, 0, min(tile, bytes-off)); err != nil {
			return 0, errors.Join(err, d.Free(at))
		}
	}
	return at, s.Sync(context.Background())
}
