// The part of cuDNN's ABI that is called, declared here so that the build needs no
// header of NVIDIA's. Every constant and function is named in one place, the lists
// below, as cudnn_graph.h names it. CheckHeaders compiles this file beside the real
// header, whose types then take the place of ours.
#ifndef EBTRAIN_CUDNN_ABI_H
#define EBTRAIN_CUDNN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef EB_REAL_CUDNN_H
typedef int cudnnStatus_t;                // an enumeration
typedef int cudnnBackendDescriptorType_t; // an enumeration
typedef int cudnnBackendAttributeName_t;  // an enumeration
typedef int cudnnBackendAttributeType_t;  // an enumeration
typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;
typedef struct CUstream_st *cudaStream_t;
#endif

#define EB_CUDNN_CONSTANTS(X) \
	X(CUDNN_STATUS_SUCCESS, 0) \
	X(CUDNN_STATUS_NOT_INITIALIZED, 1001) \
	X(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, 1002) \
	X(CUDNN_STATUS_NOT_SUPPORTED, 3000) \
	X(CUDNN_STATUS_INTERNAL_ERROR, 4000) \
	X(CUDNN_DATA_FLOAT, 0) \
	X(CUDNN_DATA_DOUBLE, 1) \
	X(CUDNN_DATA_BFLOAT16, 9) \
	X(CUDNN_CROSS_CORRELATION, 1) \
	X(CUDNN_HEUR_MODE_FALLBACK, 2) \
	X(CUDNN_HEUR_MODE_A, 3) \
	X(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0) \
	X(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1) \
	X(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2) \
	X(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4) \
	X(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, 0) \
	X(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1) \
	X(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2) \
	X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3) \
	X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4) \
	X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5) \
	X(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 7) \
	X(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10) \
	X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
	X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12) \
	X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15) \
	X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16) \
	X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17) \
	X(CUDNN_TYPE_HANDLE, 0) \
	X(CUDNN_TYPE_DATA_TYPE, 1) \
	X(CUDNN_TYPE_INT64, 3) \
	X(CUDNN_TYPE_FLOAT, 4) \
	X(CUDNN_TYPE_DOUBLE, 5) \
	X(CUDNN_TYPE_VOID_PTR, 6) \
	X(CUDNN_TYPE_CONVOLUTION_MODE, 7) \
	X(CUDNN_TYPE_HEUR_MODE, 8) \
	X(CUDNN_TYPE_KNOB_TYPE, 9) \
	X(CUDNN_TYPE_NUMERICAL_NOTE, 11) \
	X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15) \
	X(CUDNN_TYPE_BEHAVIOR_NOTE, 19) \
	X(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100) \
	X(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101) \
	X(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102) \
	X(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103) \
	X(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104) \
	X(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105) \
	X(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106) \
	X(CUDNN_ATTR_ENGINEHEUR_MODE, 200) \
	X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201) \
	X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202) \
	X(CUDNN_ATTR_ENGINECFG_ENGINE, 300) \
	X(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 302) \
	X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400) \
	X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401) \
	X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) \
	X(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 600) \
	X(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 601) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716) \
	X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717) \
	X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800) \
	X(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801) \
	X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900) \
	X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901) \
	X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902) \
	X(CUDNN_ATTR_TENSOR_STRIDES, 903) \
	X(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906) \
	X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000) \
	X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001) \
	X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003) \
	X(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 1300) \
	X(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301) \
	X(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303) \
	X(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, 1305)

// Constants, by their names in the header with EB_ in front.
enum {
#define X(name, value) EB_##name = value,
	EB_CUDNN_CONSTANTS(X)
#undef X
};

// Functions: result, name, arguments.
#define EB_CUDNN_FUNCTIONS(X) \
	X(size_t, cudnnGetVersion, (void)) \
	X(size_t, cudnnGetCudartVersion, (void)) \
	X(const char *, cudnnGetErrorString, (cudnnStatus_t status)) \
	X(void, cudnnGetLastErrorString, (char *message, size_t max_size)) \
	X(cudnnStatus_t, cudnnCreate, (cudnnHandle_t *handle)) \
	X(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle)) \
	X(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream)) \
	X(cudnnStatus_t, cudnnBackendCreateDescriptor, (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor)) \
	X(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor)) \
	X(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor)) \
	X(cudnnStatus_t, cudnnBackendSetAttribute, (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, \
			cudnnBackendAttributeType_t type, int64_t count, const void *elements)) \
	X(cudnnStatus_t, cudnnBackendGetAttribute, (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name, \
			cudnnBackendAttributeType_t type, int64_t asked, int64_t *count, void *elements)) \
	X(cudnnStatus_t, cudnnBackendExecute, (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack))

typedef struct eb_cudnn {
#define X(result, name, args) result(*name) args;
	EB_CUDNN_FUNCTIONS(X)
#undef X
} eb_cudnn;

#endif
