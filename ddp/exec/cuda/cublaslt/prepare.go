//go:build cgo

package cublaslt

// #include "shim.h"
import "C"

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unsafe"

	"ebtrain/ddp/exec/cuda/linalg"
)

// Prepare returns algorithms for a product; none where cuBLASLt has none for it.
func (l *Library) Prepare(p linalg.Problem, most int) (list []linalg.Candidate, err error) {
	q, ok := p.(linalg.Product)
	if !ok || !takes(q) || most < 1 {
		return nil, nil
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	err = l.dev.Attach(func() error {
		results, err := l.algorithms(q, most)
		for i := range results {
			if err == nil {
				list, err = l.add(list, q, &results[i])
			}
		}
		if err != nil {
			for _, made := range list {
				err = cmp.Or(err, made.(*product).release())
			}
			list = nil
		}
		return err
	})
	return list, err
}

// algorithms are what the heuristics offer for a problem, in their order.
func (l *Library) algorithms(p linalg.Product, most int) (results []C.cublasLtMatmulHeuristicResult_t, err error) {
	m, err := l.describe(p)
	defer func() { err = cmp.Or(err, m.release()) }()
	if err != nil {
		return nil, err
	}
	var why C.eb_why
	var pref C.uintptr_t
	if err := l.check(C.eb_cublaslt_pref(l.api, &pref, &why), &why, ""); err != nil {
		return nil, err
	}
	defer func() {
		var late C.eb_why
		err = cmp.Or(err, l.check(C.eb_cublaslt_unpref(l.api, pref, &late), &late, ""))
	}()
	if err := l.prefer(pref); err != nil {
		return nil, err
	}
	results = make([]C.cublasLtMatmulHeuristicResult_t, most)
	var n C.int
	status := C.eb_cublaslt_heuristic(l.api, l.handle, &m.c, pref, C.int(most), &results[0], &n, &why)
	if status == C.EB_CUBLAS_STATUS_NOT_SUPPORTED {
		return nil, nil
	}
	if err := l.check(status, &why, p.String()); err != nil {
		return nil, err
	}
	return results[:min(int(n), most)], nil
}

// prefer says what algorithms are to be like: how much memory they may need, how sums
// are put together, how well operands are aligned.
func (l *Library) prefer(pref C.uintptr_t) error {
	bytes, scheme, align := C.uint64_t(l.workspace), C.uint32_t(C.EB_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE), C.uint32_t(linalg.Align)
	var why C.eb_why
	status := C.eb_cublaslt_pref_set(l.api, pref, C.EB_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, unsafe.Pointer(&bytes), 8, &why)
	if status == 0 {
		status = C.eb_cublaslt_pref_set(l.api, pref, C.EB_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, unsafe.Pointer(&scheme), 4, &why)
	}
	for _, attr := range [...]C.int{
		C.EB_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, C.EB_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
		C.EB_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, C.EB_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
	} {
		if status == 0 {
			status = C.eb_cublaslt_pref_set(l.api, pref, attr, unsafe.Pointer(&align), 4, &why)
		}
	}
	return l.check(status, &why, "")
}

// add makes a candidate of a result, unless it is none after all.
func (l *Library) add(list []linalg.Candidate, p linalg.Product, r *C.cublasLtMatmulHeuristicResult_t) ([]linalg.Candidate, error) {
	if r.state != C.EB_CUBLAS_STATUS_SUCCESS || int64(r.workspaceSize) > l.workspace {
		return list, nil
	}
	m, err := l.describe(p)
	if err == nil {
		m.algo, m.work = r.algo, int64(r.workspaceSize)
		var scheme uint32
		if scheme, err = m.read(); err == nil && scheme&^C.EB_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE == 0 {
			return append(list, m), nil
		}
	}
	return list, cmp.Or(err, m.release())
}

// read names the algorithm, and says how it puts sums together. Not every algorithm
// tells all of it; one that does not tell how it sums is one that the heuristics, who
// know, have let pass.
func (m *product) read() (scheme uint32, err error) {
	name := []string{"algorithm", "tile", "stages", "split"}
	for i, attr := range [...]C.int{
		C.EB_CUBLASLT_ALGO_CONFIG_ID, C.EB_CUBLASLT_ALGO_CONFIG_TILE_ID, C.EB_CUBLASLT_ALGO_CONFIG_STAGES_ID,
		C.EB_CUBLASLT_ALGO_CONFIG_SPLITK_NUM, C.EB_CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
	} {
		var why C.eb_why
		var v C.uint32_t
		status := C.eb_cublaslt_config(m.l.api, &m.algo, attr, &v, &why)
		text := fmt.Sprint(v)
		if status == C.EB_CUBLAS_STATUS_NOT_SUPPORTED || status == C.EB_CUBLAS_STATUS_INVALID_VALUE {
			v, text = 0, "unknown"
		} else if err := m.l.check(status, &why, m.p.String()); err != nil {
			return 0, err
		}
		if i < len(name) {
			name[i] += " " + text
		} else {
			scheme = uint32(v)
		}
	}
	m.name = strings.Join(name, ", ")
	return scheme, nil
}

// Restore makes the candidate of an algorithm again.
func (l *Library) Restore(p linalg.Problem, saved json.RawMessage) (linalg.Candidate, error) {
	q, ok := p.(linalg.Product)
	if !ok {
		return nil, fmt.Errorf("cuBLASLt has no algorithm for %v", p)
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	var c choice
	err := json.Unmarshal(saved, &c)
	raw, bad := hex.DecodeString(c.Algo)
	if err = cmp.Or(err, bad); err != nil || len(raw) != C.sizeof_cublasLtMatmulAlgo_t {
		return nil, fmt.Errorf("the choice of an algorithm for %v is %q, want %d bytes: %w", p, saved, C.sizeof_cublasLtMatmulAlgo_t, err)
	}
	var m *product
	err = l.dev.Attach(func() error {
		var why C.eb_why
		var r C.cublasLtMatmulHeuristicResult_t
		if m, err = l.describe(q); err != nil {
			return cmp.Or(err, m.release())
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&m.algo)), C.sizeof_cublasLtMatmulAlgo_t), raw)
		if err = l.check(C.eb_cublaslt_check(l.api, l.handle, &m.c, &m.algo, &r, &why), &why, q.String()); err == nil {
			m.work = int64(r.workspaceSize)
			_, err = m.read()
		}
		if err != nil {
			return cmp.Or(err, m.release())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}
