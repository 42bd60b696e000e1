// What Go calls. Handles, descriptors and device addresses are numbers here, so that
// Go keeps no C pointer. A call that fails leaves its name and status in why.
#ifndef EBTRAIN_CUBLASLT_SHIM_H
#define EBTRAIN_CUBLASLT_SHIM_H

#include "abi.h"

// A failed call.
typedef struct eb_why {
	char name[96];
	char text[256];
	const char *call;
} eb_why;

// A product's descriptors: operation, layouts of a, b and result.
typedef struct eb_product {
	uintptr_t desc, a, b, d;
} eb_product;

// eb_cublaslt_name is the name of function i of the table, NULL behind the last.
const char *eb_cublaslt_name(int i);
// eb_cublaslt_put sets function i of the table.
void eb_cublaslt_put(eb_cublaslt *l, int i, uintptr_t f);

size_t eb_cublaslt_version(const eb_cublaslt *l);
int eb_cublaslt_create(const eb_cublaslt *l, uintptr_t *handle, eb_why *why);
int eb_cublaslt_destroy(const eb_cublaslt *l, uintptr_t handle, eb_why *why);
int eb_cublaslt_desc(const eb_cublaslt *l, uintptr_t *desc, int compute, int scale, eb_why *why);
int eb_cublaslt_undesc(const eb_cublaslt *l, uintptr_t desc, eb_why *why);
int eb_cublaslt_desc_set(const eb_cublaslt *l, uintptr_t desc, int attr, int32_t value, eb_why *why);
int eb_cublaslt_layout(const eb_cublaslt *l, uintptr_t *layout, int type, uint64_t rows, uint64_t cols, int64_t ld, eb_why *why);
int eb_cublaslt_unlayout(const eb_cublaslt *l, uintptr_t layout, eb_why *why);
// eb_cublaslt_batch says that a layout is of count matrices, stride elements apart.
int eb_cublaslt_batch(const eb_cublaslt *l, uintptr_t layout, int32_t count, int64_t stride, eb_why *why);
int eb_cublaslt_pref(const eb_cublaslt *l, uintptr_t *pref, eb_why *why);
int eb_cublaslt_unpref(const eb_cublaslt *l, uintptr_t pref, eb_why *why);
int eb_cublaslt_pref_set(const eb_cublaslt *l, uintptr_t pref, int attr, const void *value, size_t bytes, eb_why *why);
int eb_cublaslt_heuristic(const eb_cublaslt *l, uintptr_t handle, const eb_product *p, uintptr_t pref, int asked,
		cublasLtMatmulHeuristicResult_t *results, int *count, eb_why *why);
int eb_cublaslt_check(const eb_cublaslt *l, uintptr_t handle, const eb_product *p, const cublasLtMatmulAlgo_t *algo,
		cublasLtMatmulHeuristicResult_t *result, eb_why *why);
// eb_cublaslt_config reads an attribute of 32 bits of an algorithm.
int eb_cublaslt_config(const eb_cublaslt *l, const cublasLtMatmulAlgo_t *algo, int attr, uint32_t *value, eb_why *why);
// eb_cublaslt_run computes d = a·b; wide says that scale factors are float64.
int eb_cublaslt_run(const eb_cublaslt *l, uintptr_t handle, const eb_product *p, int wide, uint64_t a, uint64_t b, uint64_t d,
		const cublasLtMatmulAlgo_t *algo, uint64_t workspace, size_t bytes, uintptr_t stream, eb_why *why);

#endif
