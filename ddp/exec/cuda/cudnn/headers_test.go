package cudnn

import (
	"testing"

	"ebtrain/ddp/exec/cuda/linalg/linalgtest"
)

func TestCheckHeaders(t *testing.T) {
	linalgtest.Headers(t, CheckHeaders, declarations, "CUDNN", "cudnn.h", [][3]string{
		{"X(CUDNN_ATTR_TENSOR_STRIDES, 903)", "X(CUDNN_ATTR_TENSOR_STRIDES, 904)", "CUDNN_ATTR_TENSOR_STRIDES"},
		{"cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream)", "cudnnSetStream, (cudnnHandle_t handle)", "cudnnSetStream"},
	})
}
