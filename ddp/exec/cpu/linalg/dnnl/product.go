//go:build cgo && !nodnnl

package dnnl

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

const (
	// little is the number of multiplications below which a matrix product is not
	// worth sharing: about ten microseconds of one thread.
	little = 1 << 18
	// pieceUnit is what the extents of pieces are multiples of: a cache line of
	// floats, and the columns that a vector holds.
	pieceUnit = 16
)

// product prepares a matrix product; if exchanged, A is in b and B in a. In
// float32 it is cut into pieces of the result, which the team computes, each
// by a kernel of one thread: the team's threads are awake, whereas OpenMP's have to
// be woken, and then compete with them for the cores. In bfloat16 it is not cut, since
// each piece would round an operand again.
func (e *onednn) product(p engine.MatMulProblem, exchanged bool, what func() string) (engine.Kernel, error) {
	g := C.eb_product{m: C.int64_t(p.M), n: C.int64_t(p.N), k: C.int64_t(p.K), ta: flag(p.TransA), tb: flag(p.TransB),
		lda: C.int64_t(p.K), ldb: C.int64_t(p.N), ldd: C.int64_t(p.N), exchanged: flag(exchanged)}
	if p.TransA {
		g.lda = g.m
	}
	if p.TransB {
		g.ldb = g.k
	}
	small := float64(p.M)*float64(p.N)*float64(p.K) < little
	if small || p.BF16 || e.team.Size() == 1 {
		return e.whole(&g, p.BF16, small || e.team.Size() == 1, what)
	}
	k := &pieces{team: e.team, exchanged: exchanged, what: what}
	k.call = k.piece
	if err := e.cut(k, g); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// whole is a product in one piece.
func (e *onednn) whole(g *C.eb_product, bf16, alone bool, what func() string) (engine.Kernel, error) {
	k := &kernel{what: what}
	if !alone {
		k.team = e.team
	}
	var where *C.char
	st := C.eb_plan_matmul(e.c, flag(bf16), flag(alone), g, &k.c, &where)
	if err := check(what(), st, where); err != nil {
		return nil, err
	}
	return k, nil
}

// pieces is a product whose result is cut into bands of rows or of columns.
type pieces struct {
	team      *threads.Team
	exchanged bool
	what      func() string
	list      []piece
	scratch   int // bytes, of all
	call      func(chunk, thread int)

	dst, a, b, work unsafe.Pointer // during Run
}

// piece is a kernel and where its operands begin, in bytes.
type piece struct {
	kernel
	dst, a, b, work int
	err             error
}

// cut makes the pieces of a product, one for each thread: two for each had twice the
// packing, and the same time.
func (e *onednn) cut(k *pieces, g C.eb_product) error {
	rows := g.m > g.n
	n := int(g.n)
	if rows {
		n = int(g.m)
	}
	units := (n + pieceUnit - 1) / pieceUnit
	count := min(units, e.team.Size())
	for i := range count {
		lo, hi := threads.Part(units, i, count)
		lo, hi = lo*pieceUnit, min(hi*pieceUnit, n)
		part, p := g, piece{kernel: kernel{what: k.what}, work: k.scratch}
		if rows {
			part.m = C.int64_t(hi - lo)
			p.dst, p.a = 4*lo*int(g.ldd), 4*lo*stride(g.lda, g.ta)
		} else {
			part.n = C.int64_t(hi - lo)
			p.dst, p.b = 4*lo, 4*lo*stride(g.ldb, 1-g.tb)
		}
		var where *C.char
		st := C.eb_plan_matmul(e.c, 0, 1, &part, &p.c, &where)
		if err := check(k.what(), st, where); err != nil {
			return err
		}
		k.scratch += (p.Scratch() + 63) &^ 63
		k.list = append(k.list, p)
	}
	return nil
}

// stride is the distance of neighbours along an axis, which lies along rows of ld
// numbers if contiguous is not 0.
func stride(ld C.int64_t, contiguous C.int) int {
	if contiguous != 0 {
		return 1
	}
	return int(ld)
}

func (k *pieces) Scratch() int { return k.scratch }

func (k *pieces) Run(dst, a, b, scratch unsafe.Pointer) error {
	if len(k.list) == 0 {
		return closed(k.what())
	}
	if k.exchanged { // offsets are of A and B
		a, b = b, a
	}
	k.dst, k.a, k.b, k.work = dst, a, b, scratch
	k.team.Do(len(k.list), k.call)
	k.dst, k.a, k.b, k.work = nil, nil, nil, nil
	for i := range k.list {
		if err := k.list[i].err; err != nil {
			return err
		}
	}
	return nil
}

// piece computes piece number i.
func (k *pieces) piece(i, _ int) {
	p := &k.list[i]
	a, b := unsafe.Add(k.a, p.a), unsafe.Add(k.b, p.b)
	if k.exchanged {
		a, b = b, a
	}
	p.err = p.Run(unsafe.Add(k.dst, p.dst), a, b, unsafe.Add(k.work, p.work))
}

func (k *pieces) Close() error {
	var errs []error
	for i := range k.list {
		errs = append(errs, k.list[i].Close())
	}
	k.list = nil
	return errors.Join(errs...)
}

// String is the problem and the implementations that oneDNN chose.
func (k *pieces) String() string {
	if len(k.list) == 0 {
		return k.what() + ": closed"
	}
	var impl []string
	for i := range k.list {
		impl = append(impl, k.list[i].impl())
	}
	return fmt.Sprintf("%s in %d pieces: %s", k.what(), len(k.list), strings.Join(impl, ", "))
}
