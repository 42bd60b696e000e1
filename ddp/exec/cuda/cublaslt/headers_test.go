package cublaslt

import (
	"testing"

	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
)

func TestCheckHeaders(t *testing.T) {
	linalgtest.Headers(t, CheckHeaders, declarations, "CUBLASLT", "cublasLt.h", [][3]string{
		{"X(CUBLAS_COMPUTE_32F, 68)", "X(CUBLAS_COMPUTE_32F, 69)", "CUBLAS_COMPUTE_32F"},
		{"cublasLtCreate, (cublasLtHandle_t *handle)", "cublasLtCreate, (cublasLtHandle_t handle)", "cublasLtCreate"},
		{"uint64_t data[8]", "uint64_t data[9]", "the size of an algorithm"},
	})
}
