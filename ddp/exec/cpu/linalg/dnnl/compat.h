// The few calls that differ between oneDNN 2.x and 3.x, under one set of
// names. In 2.x a memory descriptor is a struct and an operation descriptor is
// filled first; in 3.x descriptors are opaque and primitive descriptors are
// made directly.
#ifndef EBTRAIN_DNNL_COMPAT_H
#define EBTRAIN_DNNL_COMPAT_H

#include "api.h"

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t md_own;            // a descriptor we own
typedef const_dnnl_memory_desc_t md_ref;      // a descriptor someone owns
static inline md_ref md_of(const md_own *d) { return *d; }
static inline void md_free(const eb_api *api, md_own *d) { if (*d) api->memory_desc_destroy(*d); *d = NULL; }
#else
typedef dnnl_memory_desc_t md_own;
typedef const dnnl_memory_desc_t *md_ref;
static inline md_ref md_of(const md_own *d) { return d; }
static inline void md_free(const eb_api *api, md_own *d) { (void)api, (void)d; }
#endif

// The view of nd axes of type t with the given strides; strides NULL means "any layout".
static inline dnnl_status_t md_make(const eb_api *api, md_own *d, dnnl_data_type_t t, int nd, const int64_t *dims, const int64_t *strides) {
	dnnl_dims_t n = {0}, s = {0};
	for (int i = 0; i < nd; i++) {
		n[i] = dims[i];
		if (strides) s[i] = strides[i];
	}
#if DNNL_VERSION_MAJOR >= 3
	if (!strides) return api->memory_desc_create_with_tag(d, nd, n, t, dnnl_format_tag_any);
	return api->memory_desc_create_with_strides(d, nd, n, t, s);
#else
	if (!strides) return api->memory_desc_init_by_tag(d, nd, n, t, dnnl_format_tag_any);
	return api->memory_desc_init_by_strides(d, nd, n, t, s);
#endif
}

// Strides, dilations (0 is dense) and paddings of a convolution.
typedef struct { dnnl_dims_t stride, dilate, pad_l, pad_r; } conv_window;

static inline dnnl_status_t pd_conv_fwd(const eb_api *api, dnnl_primitive_desc_t *pd, dnnl_engine_t eng, dnnl_primitive_attr_t attr,
		md_ref src, md_ref wei, md_ref dst, const conv_window *w) {
#if DNNL_VERSION_MAJOR >= 3
	return api->convolution_forward_primitive_desc_create(pd, eng, dnnl_forward_training, dnnl_convolution_direct,
			src, wei, NULL, dst, w->stride, w->dilate, w->pad_l, w->pad_r, attr);
#else
	dnnl_convolution_desc_t d;
	dnnl_status_t s = api->dilated_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct,
			src, wei, NULL, dst, w->stride, w->dilate, w->pad_l, w->pad_r);
	return s != dnnl_success ? s : api->primitive_desc_create(pd, &d, attr, eng, NULL);
#endif
}

static inline dnnl_status_t pd_conv_bwd_data(const eb_api *api, dnnl_primitive_desc_t *pd, dnnl_engine_t eng, dnnl_primitive_attr_t attr,
		md_ref diff_src, md_ref wei, md_ref diff_dst, const conv_window *w, const_dnnl_primitive_desc_t hint) {
#if DNNL_VERSION_MAJOR >= 3
	return api->convolution_backward_data_primitive_desc_create(pd, eng, dnnl_convolution_direct,
			diff_src, wei, diff_dst, w->stride, w->dilate, w->pad_l, w->pad_r, hint, attr);
#else
	dnnl_convolution_desc_t d;
	dnnl_status_t s = api->dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct,
			diff_src, wei, diff_dst, w->stride, w->dilate, w->pad_l, w->pad_r);
	return s != dnnl_success ? s : api->primitive_desc_create(pd, &d, attr, eng, hint);
#endif
}

static inline dnnl_status_t pd_conv_bwd_weights(const eb_api *api, dnnl_primitive_desc_t *pd, dnnl_engine_t eng, dnnl_primitive_attr_t attr,
		md_ref src, md_ref diff_wei, md_ref diff_dst, const conv_window *w, const_dnnl_primitive_desc_t hint) {
#if DNNL_VERSION_MAJOR >= 3
	return api->convolution_backward_weights_primitive_desc_create(pd, eng, dnnl_convolution_direct,
			src, diff_wei, NULL, diff_dst, w->stride, w->dilate, w->pad_l, w->pad_r, hint, attr);
#else
	dnnl_convolution_desc_t d;
	dnnl_status_t s = api->dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct,
			src, diff_wei, NULL, diff_dst, w->stride, w->dilate, w->pad_l, w->pad_r);
	return s != dnnl_success ? s : api->primitive_desc_create(pd, &d, attr, eng, hint);
#endif
}

static inline dnnl_status_t pd_matmul(const eb_api *api, dnnl_primitive_desc_t *pd, dnnl_engine_t eng, dnnl_primitive_attr_t attr,
		md_ref a, md_ref b, md_ref dst) {
#if DNNL_VERSION_MAJOR >= 3
	return api->matmul_primitive_desc_create(pd, eng, a, b, NULL, dst, attr);
#else
	dnnl_matmul_desc_t d;
	dnnl_status_t s = api->matmul_desc_init(&d, a, b, NULL, dst);
	return s != dnnl_success ? s : api->primitive_desc_create(pd, &d, attr, eng, NULL);
#endif
}

#endif
