//go:build cgo

package cublaslt

// #include "shim.h"
import "C"

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"unsafe"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// takes says whether cuBLASLt is asked for a problem at all: operands of one type, a
// result of theirs or, of bfloat16 operands, in float32; extents that fit its numbers.
func takes(p linalg.Product) bool {
	t := p.T
	return t.A == t.B && (t.Dst == t.A || t.A == graph.BF16 && t.Dst == graph.F32) && max(p.Batch, p.M, p.N, p.K) <= math.MaxInt32
}

// product is a problem's descriptors, for one candidate.
type product struct {
	l    *Library
	p    linalg.Product
	c    C.eb_product
	algo C.cublasLtMatmulAlgo_t
	work int64
	name string
}

// describe makes the descriptors. After an error they are to be released, too.
func (l *Library) describe(p linalg.Product) (*product, error) {
	m := &product{l: l, p: p}
	var why C.eb_why
	wide := p.T.A == graph.F64
	compute, scale := C.int(C.EB_CUBLAS_COMPUTE_32F), C.int(C.EB_CUDA_R_32F)
	switch {
	case wide:
		compute, scale = C.EB_CUBLAS_COMPUTE_64F, C.EB_CUDA_R_64F
	case p.T.A == graph.F32 && p.T.Math != linalg.Full:
		compute = C.EB_CUBLAS_COMPUTE_32F_FAST_TF32
	}
	status := C.eb_cublaslt_desc(l.api, &m.c.desc, compute, scale, &why)
	// zᵀ (N,M) = Bᵀ (N,K) · Aᵀ (K,M): the first operand is b, which as column-major
	// matrix is (N,K) already, unless it holds Bᵀ.
	if status == 0 {
		status = C.eb_cublaslt_desc_set(l.api, m.c.desc, C.EB_CUBLASLT_MATMUL_DESC_TRANSA, turned(p.TransB), &why)
	}
	if status == 0 {
		status = C.eb_cublaslt_desc_set(l.api, m.c.desc, C.EB_CUBLASLT_MATMUL_DESC_TRANSB, turned(p.TransA), &why)
	}
	if status == 0 {
		status = m.layout(&m.c.a, p.T.B, p.K, p.N, p.TransB, &why)
	}
	if status == 0 {
		status = m.layout(&m.c.b, p.T.A, p.M, p.K, p.TransA, &why)
	}
	if status == 0 {
		status = m.layout(&m.c.d, p.T.Dst, p.M, p.N, false, &why)
	}
	return m, l.check(status, &why, p.String())
}

func turned(trans bool) C.int32_t {
	if trans {
		return C.EB_CUBLAS_OP_T
	}
	return C.EB_CUBLAS_OP_N
}

// layout describes a row-major matrix (rows, cols), held transposed if trans, as the
// column-major one that lies at its place.
func (m *product) layout(out *C.uintptr_t, d graph.DType, rows, cols int, trans bool, why *C.eb_why) C.int {
	if trans {
		rows, cols = cols, rows
	}
	status := C.eb_cublaslt_layout(m.l.api, out, dataType(d), C.uint64_t(cols), C.uint64_t(rows), C.int64_t(cols), why)
	if status == 0 && m.p.Batch > 1 {
		status = C.eb_cublaslt_batch(m.l.api, *out, C.int32_t(m.p.Batch), C.int64_t(rows)*C.int64_t(cols), why)
	}
	return status
}

func dataType(d graph.DType) C.int {
	switch d {
	case graph.F32:
		return C.EB_CUDA_R_32F
	case graph.F64:
		return C.EB_CUDA_R_64F
	case graph.BF16:
		return C.EB_CUDA_R_16BF
	}
	panic(fmt.Sprintf("cublaslt: %v has no matrices", d)) // linalg.Product.Check knows three types
}

// release destroys the descriptors.
func (m *product) release() error {
	var why C.eb_why
	var errs []error
	for _, layout := range [...]*C.uintptr_t{&m.c.d, &m.c.b, &m.c.a} {
		if *layout != 0 {
			errs = append(errs, m.l.check(C.eb_cublaslt_unlayout(m.l.api, *layout, &why), &why, ""))
		}
		*layout = 0
	}
	if m.c.desc != 0 {
		errs = append(errs, m.l.check(C.eb_cublaslt_undesc(m.l.api, m.c.desc, &why), &why, ""))
	}
	m.c.desc = 0
	return cmp.Or(errs...)
}

func (m *product) String() string { return m.name }

func (m *product) Workspace() int64 { return linalg.Room(m.work) }

// Enqueue puts a run onto the stream.
func (m *product) Enqueue(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error {
	work = linalg.Start(work)
	wide := C.int(0)
	if m.p.T.A == graph.F64 {
		wide = 1
	}
	return m.l.dev.Attach(func() error {
		var why C.eb_why
		status := C.eb_cublaslt_run(m.l.api, m.l.handle, &m.c, wide, C.uint64_t(o.B), C.uint64_t(o.A), C.uint64_t(o.Dst), &m.algo,
			C.uint64_t(work), C.size_t(m.work), C.uintptr_t(s.Handle()), &why)
		return m.l.check(status, &why, m.p.String())
	})
}

// choice is an algorithm.
type choice struct {
	Algo string `json:"algo"` // its bytes, hexadecimal
}

func (m *product) Saved() json.RawMessage {
	text, err := json.Marshal(choice{hex.EncodeToString(C.GoBytes(unsafe.Pointer(&m.algo), C.sizeof_cublasLtMatmulAlgo_t))})
	if err != nil {
		panic(err) // a string
	}
	return text
}

func (m *product) Close() error { return m.l.dev.Attach(m.release) }
