// The part of NCCL's ABI that is called, as it is from 2.19 to 2.30, declared
// here so that the build needs no header of NVIDIA's. A function is named in one
// place, the list below, by the name of its symbol.
#ifndef EBTRAIN_NCCL_ABI_H
#define EBTRAIN_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef EB_REAL_NCCL_H
typedef int ncclResult_t;   // an enumeration
typedef int ncclDataType_t; // an enumeration
typedef int ncclRedOp_t;    // an enumeration
typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct { char internal[128]; } ncclUniqueId;
#define EB_NCCL_CONFIG eb_nccl_config
#else
#define EB_NCCL_CONFIG ncclConfig_t
#endif

// ncclConfig_t of 2.18: later versions are longer, and take what size leaves out
// as not set. The last int was padding then and is trafficClass since 2.26, which
// heeds it whatever size and version say.
typedef struct {
	size_t size;
	unsigned magic;
	unsigned version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
} eb_nccl_config;

_Static_assert(sizeof(eb_nccl_config) == 48, "ncclConfig_t of 2.18 has 48 bytes");
_Static_assert(offsetof(eb_nccl_config, blocking) == 16 && offsetof(eb_nccl_config, netName) == 32 &&
		offsetof(eb_nccl_config, splitShare) == 40, "layout of ncclConfig_t");

#define EB_NCCL_FUNCTIONS(X) \
	X(ncclGetVersion, (int *version)) \
	X(ncclGetUniqueId, (ncclUniqueId *id)) \
	X(ncclCommInitRankConfig, (ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, EB_NCCL_CONFIG *config)) \
	X(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *result)) \
	X(ncclCommFinalize, (ncclComm_t comm)) \
	X(ncclCommDestroy, (ncclComm_t comm)) \
	X(ncclCommAbort, (ncclComm_t comm)) \
	X(ncclAllReduce, (const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclReduceScatter, (const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclAllGather, (const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclBroadcast, (const void *from, void *to, size_t n, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclSend, (const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclRecv, (void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclGroupStart, (void)) \
	X(ncclGroupEnd, (void)) \
	X(ncclMemAlloc, (void **p, size_t bytes)) \
	X(ncclMemFree, (void *p)) \
	X(ncclCommRegister, (ncclComm_t comm, void *p, size_t bytes, void **handle)) \
	X(ncclCommDeregister, (ncclComm_t comm, void *handle))

// What returns text.
#define EB_NCCL_TEXTS(X) \
	X(ncclGetErrorString, (ncclResult_t result)) \
	X(ncclGetLastError, (ncclComm_t comm))

typedef struct {
#define X(name, args) ncclResult_t(*name) args;
	EB_NCCL_FUNCTIONS(X)
#undef X
#define X(name, args) const char *(*name) args;
	EB_NCCL_TEXTS(X)
#undef X
} eb_nccl;

#endif
