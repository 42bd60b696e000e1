// What Go calls. Handles, descriptors and device addresses are numbers here, so that
// Go keeps no C pointer. A call that fails leaves what cuDNN says about it in why, in
// the same call: cuDNN keeps its last error by thread.
#ifndef EBTRAIN_CUDNN_SHIM_H
#define EBTRAIN_CUDNN_SHIM_H

#include "abi.h"

// A failed call: its status's name, and the last error's text.
typedef struct eb_why {
	char name[96];
	char text[672];
	const char *call;
} eb_why;

// eb_cudnn_name is the name of function i of the table, NULL behind the last.
const char *eb_cudnn_name(int i);
// eb_cudnn_put sets function i of the table.
void eb_cudnn_put(eb_cudnn *l, int i, uintptr_t f);

size_t eb_cudnn_version(const eb_cudnn *l);
size_t eb_cudnn_cudart(const eb_cudnn *l);
int eb_cudnn_create(const eb_cudnn *l, uintptr_t *handle, eb_why *why);
int eb_cudnn_destroy(const eb_cudnn *l, uintptr_t handle, eb_why *why);
int eb_cudnn_stream(const eb_cudnn *l, uintptr_t handle, uintptr_t stream, eb_why *why);
int eb_cudnn_desc(const eb_cudnn *l, int type, uintptr_t *desc, eb_why *why);
int eb_cudnn_undesc(const eb_cudnn *l, uintptr_t desc, eb_why *why);
int eb_cudnn_finalize(const eb_cudnn *l, uintptr_t desc, eb_why *why);
int eb_cudnn_set(const eb_cudnn *l, uintptr_t desc, int attr, int type, int64_t count, const void *elements, eb_why *why);
int eb_cudnn_get(const eb_cudnn *l, uintptr_t desc, int attr, int type, int64_t asked, int64_t *count, void *elements, eb_why *why);
// eb_cudnn_run executes a plan on n tensors.
int eb_cudnn_run(const eb_cudnn *l, uintptr_t handle, uintptr_t plan, int n, const int64_t *ids, const uint64_t *places, uint64_t workspace,
		eb_why *why);

#endif
