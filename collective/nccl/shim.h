// What Go calls of NCCL. Handles and device addresses are integers here, so that
// Go holds no pointer that is not its own. The context is current on the calling
// thread.
#ifndef EBTRAIN_NCCL_SHIM_H
#define EBTRAIN_NCCL_SHIM_H

#include "abi.h"

typedef uintptr_t handle;

// Functions in the order of the table; NULL past the end.
const char *eb_nccl_name(int i);
eb_nccl *eb_nccl_table(const handle *functions);

int eb_nccl_version(const eb_nccl *t, int *version);
int eb_nccl_unique_id(const eb_nccl *t, char *id);
int eb_nccl_init(const eb_nccl *t, handle *comm, int nranks, const char *id, int rank);
int eb_nccl_state(const eb_nccl *t, handle comm, int *state);
const char *eb_nccl_text(const eb_nccl *t, int result);
const char *eb_nccl_last(const eb_nccl *t, handle comm);
int eb_nccl_finalize(const eb_nccl *t, handle comm);
int eb_nccl_destroy(const eb_nccl *t, handle comm);
int eb_nccl_abort(const eb_nccl *t, handle comm);
int eb_nccl_all_reduce(const eb_nccl *t, handle comm, uint64_t p, size_t n, int type, int op, handle stream);
int eb_nccl_reduce_scatter(const eb_nccl *t, handle comm, uint64_t from, uint64_t to, size_t n, int type, int op, handle stream);
int eb_nccl_all_gather(const eb_nccl *t, handle comm, uint64_t from, uint64_t to, size_t n, int type, handle stream);
int eb_nccl_broadcast(const eb_nccl *t, handle comm, uint64_t p, size_t n, int type, int root, handle stream);

// eb_nccl_exchange is one group: a group is of the thread that begins it. A
// transfer of n elements that is none has n 0. failed is the call that did not
// succeed.
typedef struct {
	uint64_t p;
	size_t n;
	int peer;
	int out;
} eb_nccl_transfer;
int eb_nccl_exchange(const eb_nccl *t, handle comm, const eb_nccl_transfer *ts, int count, int type, handle stream, const char **failed);

int eb_nccl_mem_alloc(const eb_nccl *t, uint64_t *p, size_t bytes);
int eb_nccl_mem_free(const eb_nccl *t, uint64_t p);
int eb_nccl_register(const eb_nccl *t, handle comm, uint64_t p, size_t bytes, handle *registration);
int eb_nccl_deregister(const eb_nccl *t, handle comm, handle registration);

#endif
