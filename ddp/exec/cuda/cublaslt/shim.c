//go:build cgo

#include "shim.h"

#include <stdio.h>
#include <string.h>

const char *eb_cublaslt_name(int i) {
	static const char *const names[] = {
#define X(result, name, args) #name,
		EB_CUBLASLT_FUNCTIONS(X)
#undef X
	};
	return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

void eb_cublaslt_put(eb_cublaslt *l, int i, uintptr_t f) { memcpy((char *)l + (size_t)i * sizeof f, &f, sizeof f); }

// said fills in why for a call that failed, and returns its status.
static int said(const eb_cublaslt *l, int status, const char *call, eb_why *why) {
	if (status == EB_CUBLAS_STATUS_SUCCESS) return status;
	const char *name = l->cublasLtGetStatusName(status), *text = l->cublasLtGetStatusString(status);
	snprintf(why->name, sizeof why->name, "%s", name ? name : "");
	snprintf(why->text, sizeof why->text, "%s", text ? text : "");
	why->call = call;
	return status;
}

#define CALL(f, ...) said(l, l->f(__VA_ARGS__), #f, why)

size_t eb_cublaslt_version(const eb_cublaslt *l) { return l->cublasLtGetVersion(); }

int eb_cublaslt_create(const eb_cublaslt *l, uintptr_t *handle, eb_why *why) {
	cublasLtHandle_t h = NULL;
	const int status = CALL(cublasLtCreate, &h);
	*handle = (uintptr_t)h;
	return status;
}

int eb_cublaslt_destroy(const eb_cublaslt *l, uintptr_t handle, eb_why *why) { return CALL(cublasLtDestroy, (cublasLtHandle_t)handle); }

int eb_cublaslt_desc(const eb_cublaslt *l, uintptr_t *desc, int compute, int scale, eb_why *why) {
	cublasLtMatmulDesc_t d = NULL;
	const int status = CALL(cublasLtMatmulDescCreate, &d, compute, scale);
	*desc = (uintptr_t)d;
	return status;
}

int eb_cublaslt_undesc(const eb_cublaslt *l, uintptr_t desc, eb_why *why) { return CALL(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t)desc); }

int eb_cublaslt_desc_set(const eb_cublaslt *l, uintptr_t desc, int attr, int32_t value, eb_why *why) {
	return CALL(cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc_t)desc, attr, &value, sizeof value);
}

int eb_cublaslt_layout(const eb_cublaslt *l, uintptr_t *layout, int type, uint64_t rows, uint64_t cols, int64_t ld, eb_why *why) {
	cublasLtMatrixLayout_t m = NULL;
	const int status = CALL(cublasLtMatrixLayoutCreate, &m, type, rows, cols, ld);
	*layout = (uintptr_t)m;
	return status;
}

int eb_cublaslt_unlayout(const eb_cublaslt *l, uintptr_t layout, eb_why *why) {
	return CALL(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t)layout);
}

int eb_cublaslt_batch(const eb_cublaslt *l, uintptr_t layout, int32_t count, int64_t stride, eb_why *why) {
	const cublasLtMatrixLayout_t m = (cublasLtMatrixLayout_t)layout;
	const int status = CALL(cublasLtMatrixLayoutSetAttribute, m, EB_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
	return status ? status : CALL(cublasLtMatrixLayoutSetAttribute, m, EB_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
}

int eb_cublaslt_pref(const eb_cublaslt *l, uintptr_t *pref, eb_why *why) {
	cublasLtMatmulPreference_t p = NULL;
	const int status = CALL(cublasLtMatmulPreferenceCreate, &p);
	*pref = (uintptr_t)p;
	return status;
}

int eb_cublaslt_unpref(const eb_cublaslt *l, uintptr_t pref, eb_why *why) {
	return CALL(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t)pref);
}

int eb_cublaslt_pref_set(const eb_cublaslt *l, uintptr_t pref, int attr, const void *value, size_t bytes, eb_why *why) {
	return CALL(cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference_t)pref, attr, value, bytes);
}

// The operands that all questions about a product share. C is D: beta is 0.
#define PRODUCT(p) \
	(cublasLtMatmulDesc_t)(p)->desc, (cublasLtMatrixLayout_t)(p)->a, (cublasLtMatrixLayout_t)(p)->b, (cublasLtMatrixLayout_t)(p)->d, \
			(cublasLtMatrixLayout_t)(p)->d

int eb_cublaslt_heuristic(const eb_cublaslt *l, uintptr_t handle, const eb_product *p, uintptr_t pref, int asked,
		cublasLtMatmulHeuristicResult_t *results, int *count, eb_why *why) {
	return CALL(cublasLtMatmulAlgoGetHeuristic, (cublasLtHandle_t)handle, PRODUCT(p), (cublasLtMatmulPreference_t)pref, asked, results, count);
}

int eb_cublaslt_check(const eb_cublaslt *l, uintptr_t handle, const eb_product *p, const cublasLtMatmulAlgo_t *algo,
		cublasLtMatmulHeuristicResult_t *result, eb_why *why) {
	return CALL(cublasLtMatmulAlgoCheck, (cublasLtHandle_t)handle, PRODUCT(p), algo, result);
}

int eb_cublaslt_config(const eb_cublaslt *l, const cublasLtMatmulAlgo_t *algo, int attr, uint32_t *value, eb_why *why) {
	size_t written = 0;
	return CALL(cublasLtMatmulAlgoConfigGetAttribute, algo, attr, value, sizeof *value, &written);
}

int eb_cublaslt_run(const eb_cublaslt *l, uintptr_t handle, const eb_product *p, int wide, uint64_t a, uint64_t b, uint64_t d,
		const cublasLtMatmulAlgo_t *algo, uint64_t workspace, size_t bytes, uintptr_t stream, eb_why *why) {
	static const float narrow_one = 1, narrow_zero = 0;
	static const double wide_one = 1, wide_zero = 0;
	const void *alpha = wide ? (const void *)&wide_one : &narrow_one, *beta = wide ? (const void *)&wide_zero : &narrow_zero;
	void *out = (void *)(uintptr_t)d;
	return CALL(cublasLtMatmul, (cublasLtHandle_t)handle, (cublasLtMatmulDesc_t)p->desc, alpha, (void *)(uintptr_t)a, (cublasLtMatrixLayout_t)p->a,
			(void *)(uintptr_t)b, (cublasLtMatrixLayout_t)p->b, beta, out, (cublasLtMatrixLayout_t)p->d, out, (cublasLtMatrixLayout_t)p->d, algo,
			(void *)(uintptr_t)workspace, bytes, (cudaStream_t)stream);
}
