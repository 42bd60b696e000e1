// The part of cuBLASLt's ABI that is called, declared here so that the build needs no
// header of NVIDIA's. Every constant and function is named in one place, the lists
// below, as cublasLt.h names it. CheckHeaders compiles this file beside the real
// header, whose types then take the place of ours.
#ifndef EBTRAIN_CUBLASLT_ABI_H
#define EBTRAIN_CUBLASLT_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef EB_REAL_CUBLASLT_H
typedef int cublasStatus_t;                        // an enumeration
typedef int cublasComputeType_t;                   // an enumeration
typedef int cudaDataType_t;                        // an enumeration
typedef cudaDataType_t cudaDataType;
typedef int cublasLtMatmulDescAttributes_t;        // an enumeration
typedef int cublasLtMatrixLayoutAttribute_t;       // an enumeration
typedef int cublasLtMatmulPreferenceAttributes_t;  // an enumeration
typedef int cublasLtMatmulAlgoConfigAttributes_t;  // an enumeration
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque *cublasLtMatmulPreference_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

#define EB_CUBLASLT_CONSTANTS(X) \
	X(CUBLAS_STATUS_SUCCESS, 0) \
	X(CUBLAS_STATUS_ALLOC_FAILED, 3) \
	X(CUBLAS_STATUS_INVALID_VALUE, 7) \
	X(CUBLAS_STATUS_NOT_SUPPORTED, 15) \
	X(CUBLAS_OP_N, 0) \
	X(CUBLAS_OP_T, 1) \
	X(CUBLAS_COMPUTE_32F, 68) \
	X(CUBLAS_COMPUTE_64F, 70) \
	X(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
	X(CUDA_R_32F, 0) \
	X(CUDA_R_64F, 1) \
	X(CUDA_R_16BF, 14) \
	X(CUBLASLT_MATMUL_DESC_TRANSA, 3) \
	X(CUBLASLT_MATMUL_DESC_TRANSB, 4) \
	X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5) \
	X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
	X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
	X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8) \
	X(CUBLASLT_REDUCTION_SCHEME_NONE, 0) \
	X(CUBLASLT_REDUCTION_SCHEME_INPLACE, 1) \
	X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2) \
	X(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4) \
	X(CUBLASLT_ALGO_CONFIG_ID, 0) \
	X(CUBLASLT_ALGO_CONFIG_TILE_ID, 1) \
	X(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2) \
	X(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3) \
	X(CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)

// Constants, by their names in the header with EB_ in front.
enum {
#define X(name, value) EB_##name = value,
	EB_CUBLASLT_CONSTANTS(X)
#undef X
};

// Functions: result, name, arguments.
#define EB_CUBLASLT_FUNCTIONS(X) \
	X(size_t, cublasLtGetVersion, (void)) \
	X(const char *, cublasLtGetStatusName, (cublasStatus_t status)) \
	X(const char *, cublasLtGetStatusString, (cublasStatus_t status)) \
	X(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t *handle)) \
	X(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle)) \
	X(cublasStatus_t, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)) \
	X(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc)) \
	X(cublasStatus_t, cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attr, const void *buf, size_t bytes)) \
	X(cublasStatus_t, cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)) \
	X(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout)) \
	X(cublasStatus_t, cublasLtMatrixLayoutSetAttribute, (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attr, const void *buf, \
			size_t bytes)) \
	X(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t *pref)) \
	X(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t pref)) \
	X(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attr, \
			const void *buf, size_t bytes)) \
	X(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, \
			cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t pref, int asked, \
			cublasLtMatmulHeuristicResult_t results[], int *count)) \
	X(cublasStatus_t, cublasLtMatmulAlgoCheck, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, \
			cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo, \
			cublasLtMatmulHeuristicResult_t *result)) \
	X(cublasStatus_t, cublasLtMatmulAlgoConfigGetAttribute, (const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attr, void *buf, \
			size_t bytes, size_t *written)) \
	X(cublasStatus_t, cublasLtMatmul, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, \
			cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta, const void *c, cublasLtMatrixLayout_t lc, \
			void *d, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream))

typedef struct eb_cublaslt {
#define X(result, name, args) result(*name) args;
	EB_CUBLASLT_FUNCTIONS(X)
#undef X
} eb_cublaslt;

#endif
