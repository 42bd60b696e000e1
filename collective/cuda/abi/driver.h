// The part of the driver's ABI that is called, declared here so that the build
// needs no header of NVIDIA's. A function is named in one place, the lists
// below, by the name of its symbol. CheckHeaders compiles this file beside the
// real cuda.h, whose types then take the place of ours.
#ifndef EBTRAIN_CUDA_ABI_DRIVER_H
#define EBTRAIN_CUDA_ABI_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifndef EB_REAL_CUDA_H
typedef int CUresult; // an enumeration
typedef int CUdevice;
typedef int CUdevice_attribute;        // an enumeration
typedef int CUfunction_attribute;      // an enumeration
typedef int CUstreamCaptureMode;       // an enumeration
typedef int CUstreamCaptureStatus;     // an enumeration
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuuid_st { char bytes[16]; } CUuuid;
typedef void (*CUhostFn)(void *);
typedef int CUgraphNodeType;           // an enumeration
typedef uint64_t CUgraphConditionalHandle;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct CUDA_CONDITIONAL_NODE_PARAMS {
	CUgraphConditionalHandle handle;
	int type; // an enumeration
	unsigned int size;
	CUgraph *phGraph_out;
	CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;
typedef struct CUgraphNodeParams_st {
	CUgraphNodeType type;
	int reserved0[3];
	union { // of all kinds of nodes
		long long reserved1[29];
		CUDA_CONDITIONAL_NODE_PARAMS conditional;
	};
	long long reserved2;
} CUgraphNodeParams;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
	uint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	int result_out; // an enumeration
} CUDA_GRAPH_INSTANTIATE_PARAMS;
#endif

// Constants, by their names in cuda.h with EB_ in front. Headers before the CUDA that
// stands behind them lack them.
enum {
	EB_CUDA_SUCCESS = 0,
	EB_CUDA_ERROR_INVALID_VALUE = 1,
	EB_CUDA_ERROR_OUT_OF_MEMORY = 2,
	EB_CUDA_ERROR_STUB_LIBRARY = 34,
	EB_CUDA_ERROR_NO_DEVICE = 100,
	EB_CUDA_ERROR_INVALID_DEVICE = 101,
	EB_CUDA_ERROR_NOT_READY = 600,
	EB_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	EB_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
	EB_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	EB_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	EB_CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
	EB_CU_STREAM_NON_BLOCKING = 1,
	EB_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	EB_CU_STREAM_CAPTURE_STATUS_NONE = 0,
	EB_CU_EVENT_DISABLE_TIMING = 2,
	EB_CU_EVENT_RECORD_EXTERNAL = 1,
	EB_CU_EVENT_WAIT_EXTERNAL = 1,
	EB_CU_MEMHOSTALLOC_PORTABLE = 1,
	EB_CU_MEMHOSTALLOC_DEVICEMAP = 2,
	EB_CU_GRAPH_NODE_TYPE_KERNEL = 0,
	EB_CU_GRAPH_NODE_TYPE_MEMCPY = 1,
	EB_CU_GRAPH_NODE_TYPE_MEMSET = 2,
	EB_CU_GRAPH_NODE_TYPE_HOST = 3,
	EB_CU_GRAPH_NODE_TYPE_GRAPH = 4,
	EB_CU_GRAPH_NODE_TYPE_EMPTY = 5,
	EB_CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
	EB_CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
	EB_CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
	EB_CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
	EB_CU_GRAPH_NODE_TYPE_CONDITIONAL = 13, // since 12.4
	EB_CU_GRAPH_COND_ASSIGN_DEFAULT = 1, // since 12.4
	EB_CU_GRAPH_COND_TYPE_IF = 0, // since 12.4
	EB_CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
	EB_CUDA_GRAPH_INSTANTIATE_ERROR = 1,
	EB_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
	EB_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
	EB_CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
	EB_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5, // since 12.8
};

// Functions that every driver since CUDA 12.0 has: name, arguments.
#define EB_CUDA_FUNCTIONS(X) \
	X(cuInit, (unsigned int flags)) \
	X(cuGetErrorName, (CUresult error, const char **text)) \
	X(cuGetErrorString, (CUresult error, const char **text)) \
	X(cuDeviceGetCount, (int *count)) \
	X(cuDeviceGet, (CUdevice *device, int ordinal)) \
	X(cuDeviceGetName, (char *name, int len, CUdevice dev)) \
	X(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice dev)) \
	X(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice dev)) \
	X(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice dev)) \
	X(cuDeviceGetPCIBusId, (char *id, int len, CUdevice dev)) \
	X(cuDevicePrimaryCtxRetain, (CUcontext *ctx, CUdevice dev)) \
	X(cuDevicePrimaryCtxRelease_v2, (CUdevice dev)) \
	X(cuCtxGetCurrent, (CUcontext *ctx)) \
	X(cuCtxSetCurrent, (CUcontext ctx)) \
	X(cuCtxSynchronize, (void)) \
	X(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) \
	X(cuMemGetInfo_v2, (size_t *free, size_t *total)) \
	X(cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes)) \
	X(cuMemFree_v2, (CUdeviceptr p)) \
	X(cuMemHostAlloc, (void **p, size_t bytes, unsigned int flags)) \
	X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *device, void *host, unsigned int flags)) \
	X(cuMemFreeHost, (void *p)) \
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t n, CUstream stream)) \
	X(cuMemsetD32Async, (CUdeviceptr to, unsigned int value, size_t n, CUstream stream)) \
	X(cuStreamCreateWithPriority, (CUstream *stream, unsigned int flags, int priority)) \
	X(cuStreamDestroy_v2, (CUstream stream)) \
	X(cuStreamSynchronize, (CUstream stream)) \
	X(cuStreamQuery, (CUstream stream)) \
	X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags)) \
	X(cuLaunchHostFunc, (CUstream stream, CUhostFn f, void *data)) \
	X(cuEventCreate, (CUevent *event, unsigned int flags)) \
	X(cuEventDestroy_v2, (CUevent event)) \
	X(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags)) \
	X(cuEventQuery, (CUevent event)) \
	X(cuEventSynchronize, (CUevent event)) \
	X(cuEventElapsedTime, (float *ms, CUevent from, CUevent to)) \
	X(cuModuleLoadData, (CUmodule *module, const void *image)) \
	X(cuModuleUnload, (CUmodule module)) \
	X(cuModuleGetFunction, (CUfunction *f, CUmodule module, const char *name)) \
	X(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction f)) \
	X(cuLaunchKernel, (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, \
			unsigned int shared, CUstream stream, void **params, void **extra)) \
	X(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode)) \
	X(cuStreamEndCapture, (CUstream stream, CUgraph *graph)) \
	X(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status)) \
	X(cuGraphCreate, (CUgraph *graph, unsigned int flags)) \
	X(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n)) \
	X(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type)) \
	X(cuGraphInstantiateWithFlags, (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
	X(cuGraphInstantiateWithParams, (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)) \
	X(cuGraphUpload, (CUgraphExec exec, CUstream stream)) \
	X(cuGraphLaunch, (CUgraphExec exec, CUstream stream)) \
	X(cuGraphExecDestroy, (CUgraphExec exec)) \
	X(cuGraphDestroy, (CUgraph graph))

// Functions of newer drivers, all of them since CUDA 12.4, and how what they take lies
// in memory: structure, member, offset. Older headers lack the types.
#if defined EB_REAL_CUDA_H && CUDA_VERSION < 12040
#define EB_CUDA_NEWER(X)
#define EB_CUDA_LAYOUTS(X)
#define EB_CUDA_SIZES(X)
#else
#define EB_CUDA_NEWER(X) \
	X(cuFuncLoad, (CUfunction f)) \
	X(cuFuncGetParamInfo, (CUfunction f, size_t index, size_t *offset, size_t *size)) \
	X(cuGraphConditionalHandleCreate, (CUgraphConditionalHandle *handle, CUgraph graph, CUcontext ctx, unsigned int value, unsigned int flags)) \
	X(cuGraphAddNode_v2, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *params)) \
	X(cuStreamBeginCaptureToGraph, (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode))
#define EB_CUDA_LAYOUTS(X) \
	X(CUgraphNodeParams, type, 0) \
	X(CUgraphNodeParams, conditional.handle, 16) \
	X(CUgraphNodeParams, conditional.type, 24) \
	X(CUgraphNodeParams, conditional.size, 28) \
	X(CUgraphNodeParams, conditional.phGraph_out, 32) \
	X(CUgraphNodeParams, conditional.ctx, 40) \
	X(CUDA_GRAPH_INSTANTIATE_PARAMS, flags, 0) \
	X(CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream, 8) \
	X(CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out, 16) \
	X(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out, 24)
#define EB_CUDA_SIZES(X) \
	X(CUgraphNodeParams, 256) \
	X(CUDA_GRAPH_INSTANTIATE_PARAMS, 32)
#endif

// Functions of which headers, from CUDA 13 on, mean a later version by the same name. A
// driver may lack them.
#ifdef EB_REAL_CUDA_H
#define EB_CUDA_OLDER(X)
#else
#define EB_CUDA_OLDER(X) \
	X(cuDeviceGetUuid, (CUuuid *uuid, CUdevice dev))
#endif

typedef struct eb_cuda {
#define X(name, args) CUresult(*name) args;
	EB_CUDA_FUNCTIONS(X)
	EB_CUDA_NEWER(X)
	EB_CUDA_OLDER(X)
#undef X
} eb_cuda;

// The structures lie here as there.
#define X(type, member, at) _Static_assert(offsetof(type, member) == at, #type "." #member);
EB_CUDA_LAYOUTS(X)
#undef X
#define X(type, bytes) _Static_assert(sizeof(type) == bytes, #type);
EB_CUDA_SIZES(X)
#undef X

#endif
