//go:build cgo

#include "shim.h"

#include <stdlib.h>

const eb_cuda *eb_resolve(handle library, const char **lacks) {
	eb_cuda *t = calloc(1, sizeof *t);
	*lacks = "calloc";
	if (!t) return NULL;
#define X(name, args) \
	*lacks = #name; \
	if (!(*(handle *)&t->name = eb_symbol(library, #name))) { free(t); return NULL; }
	EB_CUDA_FUNCTIONS(X)
#undef X
#define X(name, args) *(handle *)&t->name = eb_symbol(library, #name);
	EB_CUDA_NEWER(X)
	EB_CUDA_OLDER(X)
#undef X
	return t;
}

int eb_init(const eb_cuda *t) { return t->cuInit(0); }

const char *eb_error_name(const eb_cuda *t, int code) {
	const char *s = NULL;
	return t->cuGetErrorName(code, &s) || !s ? "unknown code" : s;
}

const char *eb_error_text(const eb_cuda *t, int code) {
	const char *s = NULL;
	return t->cuGetErrorString(code, &s) || !s ? "the driver does not know this code" : s;
}

int eb_device_count(const eb_cuda *t, int *n) { return t->cuDeviceGetCount(n); }
int eb_device(const eb_cuda *t, int ordinal, int *device) { return t->cuDeviceGet(device, ordinal); }
int eb_device_name(const eb_cuda *t, int device, char *name, int len) { return t->cuDeviceGetName(name, len, device); }
int eb_device_bus(const eb_cuda *t, int device, char *id, int len) { return t->cuDeviceGetPCIBusId(id, len, device); }
int eb_device_uuid(const eb_cuda *t, int device, unsigned char *uuid) { return t->cuDeviceGetUuid_v2((CUuuid *)uuid, device); }

// The first version of the function names the GPU that a part (MIG) is of.
int eb_device_whole_uuid(const eb_cuda *t, int device, unsigned char *uuid) {
	return t->cuDeviceGetUuid ? t->cuDeviceGetUuid((CUuuid *)uuid, device) : eb_device_uuid(t, device, uuid);
}

int eb_device_memory(const eb_cuda *t, int device, size_t *bytes) { return t->cuDeviceTotalMem_v2(bytes, device); }
int eb_device_attribute(const eb_cuda *t, int device, int attribute, int *value) { return t->cuDeviceGetAttribute(value, attribute, device); }
int eb_retain(const eb_cuda *t, int device, handle *ctx) { return t->cuDevicePrimaryCtxRetain((CUcontext *)ctx, device); }
int eb_release(const eb_cuda *t, int device) { return t->cuDevicePrimaryCtxRelease_v2(device); }

// Asking the driver which context is current is a load from its thread-local
// memory. A copy of our own would be wrong after NCCL or cuDNN set another.
int eb_enter(const eb_cuda *t, handle ctx) {
	CUcontext now = NULL;
	if (!t->cuCtxGetCurrent(&now) && now == (CUcontext)ctx) return 0;
	CUresult r = t->cuCtxSetCurrent((CUcontext)ctx);
	return r ? (int)r | EB_ENTERING : 0;
}

// ENTER_AND makes the context current, then calls.
#define ENTER_AND(call) \
	do { \
		int entered = eb_enter(t, ctx); \
		return entered ? entered : (int)(call); \
	} while (0)

int eb_sync(const eb_cuda *t, handle ctx) { ENTER_AND(t->cuCtxSynchronize()); }
int eb_mem_info(const eb_cuda *t, handle ctx, size_t *free, size_t *total) { ENTER_AND(t->cuMemGetInfo_v2(free, total)); }
int eb_alloc(const eb_cuda *t, handle ctx, size_t bytes, uint64_t *p) { ENTER_AND(t->cuMemAlloc_v2((CUdeviceptr *)p, bytes)); }
int eb_free(const eb_cuda *t, handle ctx, uint64_t p) { ENTER_AND(t->cuMemFree_v2(p)); }

int eb_pin(const eb_cuda *t, handle ctx, size_t bytes, void **host, uint64_t *device) {
	int r = eb_enter(t, ctx);
	if (r) return r;
	if ((r = t->cuMemHostAlloc(host, bytes, EB_CU_MEMHOSTALLOC_PORTABLE | EB_CU_MEMHOSTALLOC_DEVICEMAP))) return r;
	if ((r = t->cuMemHostGetDevicePointer_v2((CUdeviceptr *)device, *host, 0))) t->cuMemFreeHost(*host);
	return r;
}

int eb_unpin(const eb_cuda *t, handle ctx, void *host) { ENTER_AND(t->cuMemFreeHost(host)); }

#define STREAM ((CUstream)stream)

int eb_stream(const eb_cuda *t, handle ctx, int priority, handle *stream) {
	int r = eb_enter(t, ctx), least = 0, greatest = 0;
	if (r || (r = t->cuCtxGetStreamPriorityRange(&least, &greatest))) return r;
	if (priority > least) priority = least;
	if (priority < greatest) priority = greatest;
	return t->cuStreamCreateWithPriority((CUstream *)stream, EB_CU_STREAM_NON_BLOCKING, priority);
}

int eb_stream_close(const eb_cuda *t, handle ctx, handle stream) { ENTER_AND(t->cuStreamDestroy_v2(STREAM)); }
int eb_stream_sync(const eb_cuda *t, handle ctx, handle stream) { ENTER_AND(t->cuStreamSynchronize(STREAM)); }
int eb_stream_query(const eb_cuda *t, handle ctx, handle stream) { ENTER_AND(t->cuStreamQuery(STREAM)); }
int eb_stream_wait(const eb_cuda *t, handle ctx, handle stream, handle event, unsigned flags) {
	ENTER_AND(t->cuStreamWaitEvent(STREAM, (CUevent)event, flags));
}
int eb_copy_in(const eb_cuda *t, handle ctx, handle stream, uint64_t to, const void *from, size_t n) {
	ENTER_AND(t->cuMemcpyHtoDAsync_v2(to, from, n, STREAM));
}
int eb_copy_out(const eb_cuda *t, handle ctx, handle stream, void *to, uint64_t from, size_t n) {
	ENTER_AND(t->cuMemcpyDtoHAsync_v2(to, from, n, STREAM));
}
int eb_copy(const eb_cuda *t, handle ctx, handle stream, uint64_t to, uint64_t from, size_t n) {
	ENTER_AND(t->cuMemcpyDtoDAsync_v2(to, from, n, STREAM));
}
int eb_set8(const eb_cuda *t, handle ctx, handle stream, uint64_t to, unsigned char value, size_t n) {
	ENTER_AND(t->cuMemsetD8Async(to, value, n, STREAM));
}
int eb_set32(const eb_cuda *t, handle ctx, handle stream, uint64_t to, uint32_t value, size_t n) {
	ENTER_AND(t->cuMemsetD32Async(to, value, n, STREAM));
}

// The kernel's one parameter is a struct, whose size the driver knows from the
// module. It is copied before the call returns.
int eb_launch(const eb_cuda *t, handle ctx, handle stream, handle f, unsigned grid, unsigned block, unsigned shared, void *args) {
	void *params[] = {args};
	ENTER_AND(t->cuLaunchKernel((CUfunction)f, grid, 1, 1, block, 1, 1, shared, STREAM, args ? params : NULL, NULL));
}

void ebHostFunc(void *data); // of Go

int eb_host_func(const eb_cuda *t, handle ctx, handle stream, handle data) {
	ENTER_AND(t->cuLaunchHostFunc(STREAM, ebHostFunc, (void *)data));
}

#define EVENT ((CUevent)event)

int eb_event(const eb_cuda *t, handle ctx, unsigned flags, handle *event) { ENTER_AND(t->cuEventCreate((CUevent *)event, flags)); }
int eb_event_close(const eb_cuda *t, handle ctx, handle event) { ENTER_AND(t->cuEventDestroy_v2(EVENT)); }
int eb_event_record(const eb_cuda *t, handle ctx, handle event, handle stream, unsigned flags) {
	ENTER_AND(t->cuEventRecordWithFlags(EVENT, STREAM, flags));
}
int eb_event_query(const eb_cuda *t, handle ctx, handle event) { ENTER_AND(t->cuEventQuery(EVENT)); }
int eb_event_sync(const eb_cuda *t, handle ctx, handle event) { ENTER_AND(t->cuEventSynchronize(EVENT)); }
int eb_event_elapsed(const eb_cuda *t, handle ctx, handle from, handle to, float *ms) {
	ENTER_AND(t->cuEventElapsedTime(ms, (CUevent)from, (CUevent)to));
}

int eb_load(const eb_cuda *t, handle ctx, const void *image, handle *module) { ENTER_AND(t->cuModuleLoadData((CUmodule *)module, image)); }
int eb_unload(const eb_cuda *t, handle ctx, handle module) { ENTER_AND(t->cuModuleUnload((CUmodule)module)); }
int eb_function(const eb_cuda *t, handle ctx, handle module, const char *name, handle *f) {
	ENTER_AND(t->cuModuleGetFunction((CUfunction *)f, (CUmodule)module, name));
}

int eb_force(const eb_cuda *t, handle ctx, handle f, long long *bytes) {
	int r = eb_enter(t, ctx), registers;
	if (r) return r;
	r = t->cuFuncLoad ? t->cuFuncLoad((CUfunction)f) : t->cuFuncGetAttribute(&registers, EB_CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)f);
	if (r) return r;
	*bytes = -1;
	if (!t->cuFuncGetParamInfo) return 0;
	size_t offset = 0, size = 0;
	// INVALID_VALUE: there is no parameter of this number.
	r = t->cuFuncGetParamInfo((CUfunction)f, 0, &offset, &size);
	if (r == EB_CUDA_ERROR_INVALID_VALUE) size = 0, r = 0;
	*bytes = (long long)size;
	return r;
}

int eb_capture(const eb_cuda *t, handle ctx, handle stream) {
	ENTER_AND(t->cuStreamBeginCapture_v2(STREAM, EB_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}
int eb_capture_end(const eb_cuda *t, handle ctx, handle stream, handle *graph) { ENTER_AND(t->cuStreamEndCapture(STREAM, (CUgraph *)graph)); }
int eb_capturing(const eb_cuda *t, handle ctx, handle stream, int *status) {
	ENTER_AND(t->cuStreamIsCapturing(STREAM, (CUstreamCaptureStatus *)status));
}
int eb_graph_nodes(const eb_cuda *t, handle ctx, handle graph, size_t *n) { ENTER_AND(t->cuGraphGetNodes((CUgraph)graph, NULL, n)); }
int eb_graph_close(const eb_cuda *t, handle ctx, handle graph) { ENTER_AND(t->cuGraphDestroy((CUgraph)graph)); }
int eb_instantiate(const eb_cuda *t, handle ctx, handle graph, handle *exec) {
	ENTER_AND(t->cuGraphInstantiateWithFlags((CUgraphExec *)exec, (CUgraph)graph, 0));
}

int eb_bodies(const eb_cuda *t) { return t->cuGraphConditionalHandleCreate && t->cuGraphAddNode_v2 && t->cuStreamBeginCaptureToGraph; }
int eb_graph(const eb_cuda *t, handle ctx, handle *graph) { ENTER_AND(t->cuGraphCreate((CUgraph *)graph, 0)); }

// The condition is 1 at the beginning of each launch, and nothing changes it.
int eb_condition(const eb_cuda *t, handle ctx, handle graph, uint64_t *condition) {
	ENTER_AND(t->cuGraphConditionalHandleCreate(condition, (CUgraph)graph, (CUcontext)ctx, 1, EB_CU_GRAPH_COND_ASSIGN_DEFAULT));
}

int eb_add_body(const eb_cuda *t, handle ctx, handle graph, uint64_t condition, handle *body) {
	CUgraphNode node;
	CUgraphNodeParams params = {.type = EB_CU_GRAPH_NODE_TYPE_CONDITIONAL};
	params.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){condition, EB_CU_GRAPH_COND_TYPE_IF, 1, NULL, (CUcontext)ctx};
	int r = eb_enter(t, ctx);
	if (r || (r = t->cuGraphAddNode_v2(&node, (CUgraph)graph, NULL, NULL, 0, &params))) return r;
	*body = (handle)params.conditional.phGraph_out[0];
	return 0;
}

int eb_capture_to(const eb_cuda *t, handle ctx, handle stream, handle graph) {
	ENTER_AND(t->cuStreamBeginCaptureToGraph(STREAM, (CUgraph)graph, NULL, NULL, 0, EB_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}
int eb_nodes(const eb_cuda *t, handle ctx, handle graph, handle *nodes, size_t *n) {
	ENTER_AND(t->cuGraphGetNodes((CUgraph)graph, (CUgraphNode *)nodes, n));
}
int eb_node_kind(const eb_cuda *t, handle ctx, handle node, int *kind) {
	ENTER_AND(t->cuGraphNodeGetType((CUgraphNode)node, (CUgraphNodeType *)kind));
}

int eb_instantiate_body(const eb_cuda *t, handle ctx, handle graph, handle *exec, handle *at, int *result) {
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	int r = eb_enter(t, ctx);
	if (r) return r;
	r = t->cuGraphInstantiateWithParams((CUgraphExec *)exec, (CUgraph)graph, &params);
	*at = (handle)params.hErrNode_out;
	*result = (int)params.result_out;
	return r;
}

int eb_exec_upload(const eb_cuda *t, handle ctx, handle exec, handle stream) { ENTER_AND(t->cuGraphUpload((CUgraphExec)exec, STREAM)); }
int eb_exec_launch(const eb_cuda *t, handle ctx, handle exec, handle stream) { ENTER_AND(t->cuGraphLaunch((CUgraphExec)exec, STREAM)); }
int eb_exec_close(const eb_cuda *t, handle ctx, handle exec) { ENTER_AND(t->cuGraphExecDestroy((CUgraphExec)exec)); }
