//go:build cgo

#include "shim.h"

#include <stdio.h>
#include <string.h>

const char *eb_cudnn_name(int i) {
	static const char *const names[] = {
#define X(result, name, args) #name,
		EB_CUDNN_FUNCTIONS(X)
#undef X
	};
	return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

void eb_cudnn_put(eb_cudnn *l, int i, uintptr_t f) { memcpy((char *)l + (size_t)i * sizeof f, &f, sizeof f); }

// said fills in why for a call that failed, and returns its status.
static int said(const eb_cudnn *l, int status, const char *call, eb_why *why) {
	if (status == EB_CUDNN_STATUS_SUCCESS) return status;
	const char *name = l->cudnnGetErrorString(status);
	snprintf(why->name, sizeof why->name, "%s", name ? name : "");
	why->text[0] = 0;
	l->cudnnGetLastErrorString(why->text, sizeof why->text);
	why->text[sizeof why->text - 1] = 0;
	why->call = call;
	return status;
}

#define CALL(f, ...) said(l, l->f(__VA_ARGS__), #f, why)

size_t eb_cudnn_version(const eb_cudnn *l) { return l->cudnnGetVersion(); }
size_t eb_cudnn_cudart(const eb_cudnn *l) { return l->cudnnGetCudartVersion(); }

int eb_cudnn_create(const eb_cudnn *l, uintptr_t *handle, eb_why *why) {
	cudnnHandle_t h = NULL;
	const int status = CALL(cudnnCreate, &h);
	*handle = (uintptr_t)h;
	return status;
}

int eb_cudnn_destroy(const eb_cudnn *l, uintptr_t handle, eb_why *why) { return CALL(cudnnDestroy, (cudnnHandle_t)handle); }

int eb_cudnn_stream(const eb_cudnn *l, uintptr_t handle, uintptr_t stream, eb_why *why) {
	return CALL(cudnnSetStream, (cudnnHandle_t)handle, (cudaStream_t)stream);
}

int eb_cudnn_desc(const eb_cudnn *l, int type, uintptr_t *desc, eb_why *why) {
	cudnnBackendDescriptor_t d = NULL;
	const int status = CALL(cudnnBackendCreateDescriptor, type, &d);
	*desc = (uintptr_t)d;
	return status;
}

int eb_cudnn_undesc(const eb_cudnn *l, uintptr_t desc, eb_why *why) {
	return CALL(cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t)desc);
}

int eb_cudnn_finalize(const eb_cudnn *l, uintptr_t desc, eb_why *why) {
	return CALL(cudnnBackendFinalize, (cudnnBackendDescriptor_t)desc);
}

int eb_cudnn_set(const eb_cudnn *l, uintptr_t desc, int attr, int type, int64_t count, const void *elements, eb_why *why) {
	return CALL(cudnnBackendSetAttribute, (cudnnBackendDescriptor_t)desc, attr, type, count, elements);
}

int eb_cudnn_get(const eb_cudnn *l, uintptr_t desc, int attr, int type, int64_t asked, int64_t *count, void *elements, eb_why *why) {
	return CALL(cudnnBackendGetAttribute, (cudnnBackendDescriptor_t)desc, attr, type, asked, count, elements);
}

// fill makes a variant pack complete.
static int fill(const eb_cudnn *l, cudnnBackendDescriptor_t pack, int n, const int64_t *ids, void *const *places, void *workspace, eb_why *why) {
	int status = CALL(cudnnBackendSetAttribute, pack, EB_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, EB_CUDNN_TYPE_VOID_PTR, n, places);
	if (!status) status = CALL(cudnnBackendSetAttribute, pack, EB_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, EB_CUDNN_TYPE_INT64, n, ids);
	if (!status) status = CALL(cudnnBackendSetAttribute, pack, EB_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, EB_CUDNN_TYPE_VOID_PTR, 1, &workspace);
	if (!status) status = CALL(cudnnBackendFinalize, pack);
	return status;
}

int eb_cudnn_run(const eb_cudnn *l, uintptr_t handle, uintptr_t plan, int n, const int64_t *ids, const uint64_t *places, uint64_t workspace,
		eb_why *why) {
	void *where[8];
	for (int i = 0; i < n; i++) where[i] = (void *)(uintptr_t)places[i];
	cudnnBackendDescriptor_t pack = NULL;
	int status = CALL(cudnnBackendCreateDescriptor, EB_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
	if (status) return status;
	status = fill(l, pack, n, ids, where, (void *)(uintptr_t)workspace, why);
	if (!status) status = CALL(cudnnBackendExecute, (cudnnHandle_t)handle, (cudnnBackendDescriptor_t)plan, pack);
	eb_why late;
	const int undone = said(l, l->cudnnBackendDestroyDescriptor(pack), "cudnnBackendDestroyDescriptor", &late);
	if (!status && undone) {
		*why = late;
		status = undone;
	}
	return status;
}
