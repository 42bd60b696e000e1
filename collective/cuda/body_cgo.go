//go:build cgo

package cuda

// #include "shim.h"
import "C"

import "unsafe"

// Go's constants are those of the ABI: any other is negative, and no uint.
const (
	_ uint = -(nodeKernel ^ C.EB_CU_GRAPH_NODE_TYPE_KERNEL)
	_ uint = -(nodeCopy ^ C.EB_CU_GRAPH_NODE_TYPE_MEMCPY)
	_ uint = -(nodeFill ^ C.EB_CU_GRAPH_NODE_TYPE_MEMSET)
	_ uint = -(nodeHost ^ C.EB_CU_GRAPH_NODE_TYPE_HOST)
	_ uint = -(nodeGraph ^ C.EB_CU_GRAPH_NODE_TYPE_GRAPH)
	_ uint = -(nodeEmpty ^ C.EB_CU_GRAPH_NODE_TYPE_EMPTY)
	_ uint = -(nodeWait ^ C.EB_CU_GRAPH_NODE_TYPE_WAIT_EVENT)
	_ uint = -(nodeRecord ^ C.EB_CU_GRAPH_NODE_TYPE_EVENT_RECORD)
	_ uint = -(nodeAlloc ^ C.EB_CU_GRAPH_NODE_TYPE_MEM_ALLOC)
	_ uint = -(nodeFree ^ C.EB_CU_GRAPH_NODE_TYPE_MEM_FREE)
	_ uint = -(nodeConditional ^ C.EB_CU_GRAPH_NODE_TYPE_CONDITIONAL)
	_ uint = -(resultUnused ^ C.EB_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED)
)

func (d libcuda) bodies() bool { return C.eb_bodies(d.t) != 0 }

func (d libcuda) graph(ctx uintptr) (uintptr, int) {
	var g C.handle
	code := C.eb_graph(d.t, C.handle(ctx), &g)
	return uintptr(g), int(code)
}

func (d libcuda) condition(ctx, g uintptr) (uint64, int) {
	var c C.uint64_t
	code := C.eb_condition(d.t, C.handle(ctx), C.handle(g), &c)
	return uint64(c), int(code)
}

func (d libcuda) addBody(ctx, g uintptr, condition uint64) (uintptr, int) {
	var body C.handle
	code := C.eb_add_body(d.t, C.handle(ctx), C.handle(g), C.uint64_t(condition), &body)
	return uintptr(body), int(code)
}

func (d libcuda) captureTo(ctx, s, g uintptr) int {
	return int(C.eb_capture_to(d.t, C.handle(ctx), C.handle(s), C.handle(g)))
}

func (d libcuda) nodes(ctx, g uintptr, n int) ([]uintptr, int) {
	list, room := make([]uintptr, n), C.size_t(n)
	code := C.eb_nodes(d.t, C.handle(ctx), C.handle(g), (*C.handle)(unsafe.Pointer(unsafe.SliceData(list))), &room)
	return list[:min(n, int(room))], int(code)
}

func (d libcuda) nodeKind(ctx, node uintptr) (int, int) {
	var kind C.int
	code := C.eb_node_kind(d.t, C.handle(ctx), C.handle(node), &kind)
	return int(kind), int(code)
}

func (d libcuda) instantiateBody(ctx, g uintptr) (exec, at uintptr, result, code int) {
	var e, node C.handle
	var why C.int
	code = int(C.eb_instantiate_body(d.t, C.handle(ctx), C.handle(g), &e, &node, &why))
	return uintptr(e), uintptr(node), int(why), code
}
