#include "shim.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(name, args) #name,
	EB_NCCL_FUNCTIONS(X)
	EB_NCCL_TEXTS(X)
#undef X
	NULL,
};

const char *eb_nccl_name(int i) { return names[i]; }

// The table is never freed: NCCL stays loaded. Its members are pointers to
// functions in the order of names.
eb_nccl *eb_nccl_table(const handle *functions) {
	eb_nccl *t = malloc(sizeof *t);
	if (t) memcpy(t, functions, sizeof *t);
	return t;
}

#define COMM ((ncclComm_t)comm)
#define STREAM ((cudaStream_t)stream)
#define AT(p) ((void *)(uintptr_t)(p))

int eb_nccl_version(const eb_nccl *t, int *version) { return t->ncclGetVersion(version); }

int eb_nccl_unique_id(const eb_nccl *t, char *id) {
	ncclUniqueId u;
	int r = t->ncclGetUniqueId(&u);
	memcpy(id, u.internal, sizeof u.internal);
	return r;
}

int eb_nccl_init(const eb_nccl *t, handle *comm, int nranks, const char *id, int rank) {
	ncclUniqueId u;
	memcpy(u.internal, id, sizeof u.internal);
	eb_nccl_config c = {
		.size = sizeof c,
		.magic = 0xcafebeef,
		.version = 21800,
		.blocking = 0,
		.cgaClusterSize = INT_MIN,
		.minCTAs = INT_MIN,
		.maxCTAs = INT_MIN,
		.netName = NULL,
		.splitShare = INT_MIN,
		.trafficClass = INT_MIN,
	};
	ncclComm_t made = NULL;
	int r = t->ncclCommInitRankConfig(&made, nranks, u, rank, &c);
	*comm = (handle)made;
	return r;
}

int eb_nccl_state(const eb_nccl *t, handle comm, int *state) { return t->ncclCommGetAsyncError(COMM, state); }
const char *eb_nccl_text(const eb_nccl *t, int result) { return t->ncclGetErrorString(result); }
const char *eb_nccl_last(const eb_nccl *t, handle comm) { return t->ncclGetLastError(COMM); }
int eb_nccl_finalize(const eb_nccl *t, handle comm) { return t->ncclCommFinalize(COMM); }
int eb_nccl_destroy(const eb_nccl *t, handle comm) { return t->ncclCommDestroy(COMM); }
int eb_nccl_abort(const eb_nccl *t, handle comm) { return t->ncclCommAbort(COMM); }

int eb_nccl_all_reduce(const eb_nccl *t, handle comm, uint64_t p, size_t n, int type, int op, handle stream) {
	return t->ncclAllReduce(AT(p), AT(p), n, type, op, COMM, STREAM);
}

int eb_nccl_reduce_scatter(const eb_nccl *t, handle comm, uint64_t from, uint64_t to, size_t n, int type, int op, handle stream) {
	return t->ncclReduceScatter(AT(from), AT(to), n, type, op, COMM, STREAM);
}

int eb_nccl_all_gather(const eb_nccl *t, handle comm, uint64_t from, uint64_t to, size_t n, int type, handle stream) {
	return t->ncclAllGather(AT(from), AT(to), n, type, COMM, STREAM);
}

int eb_nccl_broadcast(const eb_nccl *t, handle comm, uint64_t p, size_t n, int type, int root, handle stream) {
	return t->ncclBroadcast(AT(p), AT(p), n, type, root, COMM, STREAM);
}

int eb_nccl_exchange(const eb_nccl *t, handle comm, const eb_nccl_transfer *ts, int count, int type, handle stream, const char **failed) {
	*failed = "ncclGroupStart";
	int r = t->ncclGroupStart();
	if (r) return r;
	for (int i = 0; i < count && !r; i++) {
		if (!ts[i].n) continue;
		*failed = ts[i].out ? "ncclSend" : "ncclRecv";
		r = ts[i].out ? t->ncclSend(AT(ts[i].p), ts[i].n, type, ts[i].peer, COMM, STREAM)
		              : t->ncclRecv(AT(ts[i].p), ts[i].n, type, ts[i].peer, COMM, STREAM);
		if (r == 7) r = 0; // in progress: the group's end says how it went
	}
	int end = t->ncclGroupEnd();
	if (r) return r;
	*failed = "ncclGroupEnd";
	return end;
}

int eb_nccl_mem_alloc(const eb_nccl *t, uint64_t *p, size_t bytes) {
	void *got = NULL;
	int r = t->ncclMemAlloc(&got, bytes);
	*p = (uintptr_t)got;
	return r;
}

int eb_nccl_mem_free(const eb_nccl *t, uint64_t p) { return t->ncclMemFree(AT(p)); }

int eb_nccl_register(const eb_nccl *t, handle comm, uint64_t p, size_t bytes, handle *registration) {
	void *got = NULL;
	int r = t->ncclCommRegister(COMM, AT(p), bytes, &got);
	*registration = (handle)got;
	return r;
}

int eb_nccl_deregister(const eb_nccl *t, handle comm, handle registration) {
	return t->ncclCommDeregister(COMM, (void *)registration);
}
