//go:build cgo && !nodnnl

// Package dnnl is the engine over oneDNN (libdnnl 2.x or 3.x): convolutions in
// their three directions, and matrix products, in float32 and in bfloat16.
//
// The library is loaded when New is called, by dlopen (api.h, load.c): a program
// built with oneDNN's header runs where there is no library, and New says why in
// a *LibraryError. In the environment, LibraryVariable names another file than
// the linker finds. Without cgo, or with the tag nodnnl, New returns ErrAbsent.
//
// Activations stay channels-last; weights are reordered, inside Run, into the
// layout that oneDNN prefers for the problem. Convolutions whose kernel covers
// the whole image, and 1×1 convolutions, run as matrix products. One Run is one
// cgo call; oneDNN allocates no buffer in it (its scratchpads are part of
// Scratch), only some ten small blocks for its own bookkeeping. A plan is a few
// primitives on slots, which are in the caller's buffers or one after the other
// in scratch, each 64-byte aligned; a weight gradient in bfloat16, for example:
//
//	a  x float32 ──reorder──▶ │ x bf16 │ ─┐
//	b  dy float32 ─reorder──▶ │ dy bf16│ ─┴▶ conv_grad_w ▶ │ dw blocked │ ─reorder─▶ dst dw float32
//	scratch                   │ x bf16 │ dy bf16 │ dw blocked │ oneDNN's scratchpads │
//
// Which kernels there are for which instruction set is oneDNN's: float32 from
// SSE4.1 to AVX-512, bfloat16 on AVX512_BF16 and AMX only (see BF16). A kernel's
// String says which it chose.
//
// Results depend on the CPU, the oneDNN version and the number of threads, and
// on nothing else.
//
// Products in float32 are cut into pieces for the threads of the team that the engine
// is On; everything else is shared by OpenMP's threads, and the team rests.
//
// Concurrency: all calls on an engine and its kernels come from one locked OS
// thread (runtime.LockOSThread). libgomp keeps a pool of threads for each OS
// thread that calls it, so calls from anywhere else are correct but leave idle
// pools behind. (The pieces of products run on the team's threads, with one thread of
// OpenMP's each: those have no pool.)
package dnnl

/*
#cgo CFLAGS: -O2 -std=c11 -Wall
#cgo LDFLAGS: -ldl
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/cpu"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// onednn is oneDNN on the CPU with a fixed number of threads.
type onednn struct {
	api  *C.eb_api
	c    *C.eb_engine
	name string
	team *threads.Team
	own  bool // the team is this engine's, which closes it
}

// New is On a team of n threads, at least 1, that the engine closes.
func New(n int) (engine.Engine, error) {
	if n < 1 {
		return nil, fmt.Errorf("dnnl: want at least 1 thread, got %d", n)
	}
	team := threads.NewTeam(n)
	e, err := on(team)
	if err != nil {
		team.Close()
		return nil, err
	}
	e.own = true
	return e, nil
}

// On loads oneDNN, unless it is loaded already, and starts it with as many
// threads as a team has. It works on the team where that is faster than OpenMP's
// threads, and does not close it. Call it on the OS thread that will run the
// kernels. The error is a *LibraryError where there is no library to use.
func On(team *threads.Team) (engine.Engine, error) {
	e, err := on(team)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func on(team *threads.Team) (*onednn, error) {
	api, err := load()
	if err != nil {
		return nil, err
	}
	if n := C.eb_team_size(api, C.int(team.Size())); int(n) != team.Size() {
		C.eb_api_free(api)
		return nil, &LibraryError{Library: "oneDNN", Why: fmt.Sprintf(
			"OpenMP gives it %d of %d threads: unset OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS", n, team.Size())}
	}
	e := &onednn{api: api, team: team}
	var where *C.char
	if err := check("starting the engine", C.eb_engine_new(api, C.int(team.Size()), &e.c, &where), where); err != nil {
		C.eb_api_free(api)
		return nil, err
	}
	var major, minor, patch C.int
	C.eb_version(e.c, &major, &minor, &patch)
	e.name = fmt.Sprintf("oneDNN %d.%d.%d", major, minor, patch)
	return e, nil
}

// ErrNoBF16 is what BF16 returns where oneDNN would emulate bfloat16, which is
// slower than float32.
var ErrNoBF16 = errors.New("this processor has no bfloat16 instructions that oneDNN may use (AVX512_BF16 or AMX)")

// BF16 is ErrNoBF16 where the CPU lacks the instructions, or DNNL_MAX_CPU_ISA
// hides them.
func (e *onednn) BF16() error {
	if e.c == nil {
		return closed("bfloat16")
	}
	if C.eb_has_bf16(e.c) == 0 {
		return ErrNoBF16
	}
	return nil
}

// Name is "oneDNN 2.6.3".
func (e *onednn) Name() string { return e.name }

// Close releases the engine; the library stays loaded. A second Close does
// nothing.
func (e *onednn) Close() error {
	C.eb_engine_free(e.c)
	C.eb_api_free(e.api)
	e.c, e.api = nil, nil
	if e.own {
		e.team.Close()
		e.own = false
	}
	return nil
}

// Conv prepares one op of a convolution. It fails where oneDNN has no
// implementation or memory runs out; the error names the problem.
func (e *onednn) Conv(op engine.ConvOp, p engine.ConvProblem) (engine.Kernel, error) {
	if err := p.Check(op); err != nil {
		return nil, fmt.Errorf("dnnl: %w", err)
	}
	what := func() string { return fmt.Sprintf("%v of %v", op, p) }
	if e.c == nil {
		return nil, closed(what())
	}
	k := &kernel{team: e.team, what: what}
	var where *C.char
	var st C.int
	g, bf16 := geometry(p, p.W), flag(p.BF16)
	switch route(op, p) {
	case asMatMul:
		return e.product(pointwise(op, p), op != engine.Forward, what)
	case asHead:
		st = C.eb_plan_head(e.c, bf16, C.int(op), C.int64_t(p.N), C.int64_t(p.O), C.int64_t(p.C), C.int64_t(p.KH*p.KW), &k.c, &where)
	case asFold:
		st = C.eb_plan_fold(e.c, bf16, &g, &k.c, &where)
	default:
		s := sound(op, p)
		s.BF16 = s.BF16 && !(cpu.X86.HasAMXBF16 && slow(op, p))
		g = geometry(s, p.W)
		st = C.eb_plan_conv(e.c, flag(s.BF16), C.int(op), &g, &k.c, &where)
	}
	if err := check(what(), st, where); err != nil {
		return nil, err
	}
	return k, nil
}

// MatMul prepares a matrix product.
func (e *onednn) MatMul(p engine.MatMulProblem) (engine.Kernel, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("dnnl: %w", err)
	}
	if e.c == nil {
		return nil, closed(p.String())
	}
	return e.product(p, false, p.String)
}

// geometry is p over images whose rows are so many pixels apart.
func geometry(p engine.ConvProblem, row int) C.eb_conv {
	i := func(v int) C.int64_t { return C.int64_t(v) }
	return C.eb_conv{
		n: i(p.N), c: i(p.C), h: i(p.H), w: i(p.W), o: i(p.O), oh: i(p.OH), ow: i(p.OW), row: i(row), groups: i(p.Groups),
		kh: i(p.KH), kw: i(p.KW), sh: i(p.StrideH), sw: i(p.StrideW),
		pt: i(p.PadT), pb: i(p.PadB), pl: i(p.PadL), pr: i(p.PadR), dh: i(p.DilH), dw: i(p.DilW),
	}
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// kernel is a plan of the C layer. what describes it in errors.
type kernel struct {
	c    *C.eb_plan
	team *threads.Team // rests while OpenMP's threads work, nil if they do not
	what func() string
}

func (k *kernel) Scratch() int {
	if k.c == nil {
		return 0
	}
	return int(C.eb_plan_scratch(k.c))
}

func (k *kernel) Run(dst, a, b, scratch unsafe.Pointer) error {
	if k.c == nil {
		return closed(k.what())
	}
	if k.team != nil {
		k.team.Rest()
	}
	if st := C.eb_plan_run(k.c, dst, a, b, scratch); st != 0 {
		return check(k.what(), st, C.eb_plan_where(k.c))
	}
	return nil
}

func (k *kernel) Close() error {
	C.eb_plan_free(k.c)
	k.c = nil
	return nil
}

// String is the problem and the implementations that oneDNN chose.
func (k *kernel) String() string {
	if k.c == nil {
		return k.what() + ": closed"
	}
	return k.what() + ": " + k.impl()
}

func (k *kernel) impl() string {
	var buf [256]C.char
	C.eb_plan_describe(k.c, &buf[0], C.size_t(len(buf)))
	return C.GoString(&buf[0])
}
