// oneDNN, loaded at run time: a table of the functions that are called, filled
// by dlopen and dlsym. Only the header takes part in the build, so one binary
// runs with and without the library. A function is named in one place, the
// lists below; its type is the header's.
#ifndef EBTRAIN_DNNL_API_H
#define EBTRAIN_DNNL_API_H

#include <stddef.h>

#include <dnnl.h>

// Functions of oneDNN, without their prefix dnnl_.
#define EB_DNNL_BOTH(X) \
	X(version) X(get_effective_cpu_isa) \
	X(engine_create) X(engine_destroy) \
	X(stream_create) X(stream_wait) X(stream_destroy) \
	X(primitive_attr_create) X(primitive_attr_set_scratchpad_mode) X(primitive_attr_destroy) \
	X(memory_create) X(memory_set_data_handle) X(memory_destroy) \
	X(memory_desc_equal) X(memory_desc_get_size) \
	X(primitive_create) X(primitive_execute) X(primitive_destroy) \
	X(primitive_desc_query) X(primitive_desc_query_md) X(primitive_desc_destroy) \
	X(reorder_primitive_desc_create)

#if DNNL_VERSION_MAJOR >= 3
#define EB_DNNL_VERSIONED(X) \
	X(memory_desc_create_with_tag) X(memory_desc_create_with_strides) X(memory_desc_destroy) \
	X(convolution_forward_primitive_desc_create) X(convolution_backward_data_primitive_desc_create) \
	X(convolution_backward_weights_primitive_desc_create) X(matmul_primitive_desc_create)
#else
#define EB_DNNL_VERSIONED(X) \
	X(memory_desc_init_by_tag) X(memory_desc_init_by_strides) X(primitive_desc_create) \
	X(dilated_convolution_forward_desc_init) X(dilated_convolution_backward_data_desc_init) \
	X(dilated_convolution_backward_weights_desc_init) X(matmul_desc_init)
#endif

// Functions of the OpenMP that oneDNN itself runs on: result, name, arguments.
#define EB_OMP(X) \
	X(int, omp_get_max_threads, (void)) \
	X(int, omp_get_num_threads, (void)) \
	X(int, omp_get_thread_num, (void)) \
	X(void, omp_set_num_threads, (int)) \
	X(void, omp_set_dynamic, (int)) \
	X(void, GOMP_parallel, (void (*)(void *), void *, unsigned, unsigned))

typedef struct eb_api {
#define X(f) __typeof__(dnnl_##f) *f;
	EB_DNNL_BOTH(X)
	EB_DNNL_VERSIONED(X)
#undef X
#define X(result, f, args) result(*f) args;
	EB_OMP(X)
#undef X
} eb_api;

#endif
