//go:build cgo

package nccl

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"unsafe"

	"ebtrain/collective/cuda"
)

// binding is libnccl.
type binding struct{ t *C.eb_nccl }

// bind resolves what is called of a library.
func bind(l *cuda.Library) (api, error) {
	var functions []C.handle
	for i := C.int(0); ; i++ {
		name := C.eb_nccl_name(i)
		if name == nil {
			break
		}
		f, err := l.Symbol(C.GoString(name))
		if err != nil {
			return nil, err
		}
		functions = append(functions, C.handle(f))
	}
	t := C.eb_nccl_table(&functions[0])
	if t == nil {
		return nil, errors.New("nccl: the host is out of memory")
	}
	return binding{t}, nil
}

func (b binding) version() (int, int) {
	var v C.int
	code := C.eb_nccl_version(b.t, &v)
	return int(v), int(code)
}

func (b binding) uniqueID() (id [idBytes]byte, code int) {
	code = int(C.eb_nccl_unique_id(b.t, (*C.char)(unsafe.Pointer(&id[0]))))
	return id, code
}

func (b binding) init(ranks int, id [idBytes]byte, rank int) (uintptr, int) {
	var comm C.handle
	code := C.eb_nccl_init(b.t, &comm, C.int(ranks), (*C.char)(unsafe.Pointer(&id[0])), C.int(rank))
	return uintptr(comm), int(code)
}

func (b binding) state(comm uintptr) (int, int) {
	var state C.int
	code := C.eb_nccl_state(b.t, C.handle(comm), &state)
	return int(state), int(code)
}

func (b binding) text(code int) string      { return C.GoString(C.eb_nccl_text(b.t, C.int(code))) }
func (b binding) last(comm uintptr) string  { return C.GoString(C.eb_nccl_last(b.t, C.handle(comm))) }
func (b binding) finalize(comm uintptr) int { return int(C.eb_nccl_finalize(b.t, C.handle(comm))) }
func (b binding) destroy(comm uintptr) int  { return int(C.eb_nccl_destroy(b.t, C.handle(comm))) }
func (b binding) abort(comm uintptr) int    { return int(C.eb_nccl_abort(b.t, C.handle(comm))) }

func (b binding) allReduce(comm uintptr, p cuda.Ptr, n, dtype, op int, stream uintptr) int {
	return int(C.eb_nccl_all_reduce(b.t, C.handle(comm), C.uint64_t(p), C.size_t(n), C.int(dtype), C.int(op), C.handle(stream)))
}

func (b binding) reduceScatter(comm uintptr, from, to cuda.Ptr, n, dtype, op int, stream uintptr) int {
	return int(C.eb_nccl_reduce_scatter(b.t, C.handle(comm), C.uint64_t(from), C.uint64_t(to), C.size_t(n), C.int(dtype), C.int(op), C.handle(stream)))
}

func (b binding) allGather(comm uintptr, from, to cuda.Ptr, n, dtype int, stream uintptr) int {
	return int(C.eb_nccl_all_gather(b.t, C.handle(comm), C.uint64_t(from), C.uint64_t(to), C.size_t(n), C.int(dtype), C.handle(stream)))
}

func (b binding) broadcast(comm uintptr, p cuda.Ptr, n, dtype, root int, stream uintptr) int {
	return int(C.eb_nccl_broadcast(b.t, C.handle(comm), C.uint64_t(p), C.size_t(n), C.int(dtype), C.int(root), C.handle(stream)))
}

func (b binding) exchange(comm uintptr, ts []transfer, dtype int, stream uintptr) (string, int) {
	list := make([]C.eb_nccl_transfer, len(ts), max(1, len(ts)))
	for i, t := range ts {
		list[i] = C.eb_nccl_transfer{p: C.uint64_t(t.p), n: C.size_t(t.n), peer: C.int(t.peer)}
		if t.out {
			list[i].out = 1
		}
	}
	var failed *C.char
	code := C.eb_nccl_exchange(b.t, C.handle(comm), unsafe.SliceData(list), C.int(len(ts)), C.int(dtype), C.handle(stream), &failed)
	return C.GoString(failed), int(code)
}

func (b binding) memAlloc(bytes int) (cuda.Ptr, int) {
	var p C.uint64_t
	code := C.eb_nccl_mem_alloc(b.t, &p, C.size_t(bytes))
	return cuda.Ptr(p), int(code)
}

func (b binding) memFree(p cuda.Ptr) int { return int(C.eb_nccl_mem_free(b.t, C.uint64_t(p))) }

func (b binding) register(comm uintptr, p cuda.Ptr, bytes int) (uintptr, int) {
	var r C.handle
	code := C.eb_nccl_register(b.t, C.handle(comm), C.uint64_t(p), C.size_t(bytes), &r)
	return uintptr(r), int(code)
}

func (b binding) deregister(comm, registration uintptr) int {
	return int(C.eb_nccl_deregister(b.t, C.handle(comm), C.handle(registration)))
}
