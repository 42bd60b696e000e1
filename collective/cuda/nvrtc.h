// What Go calls of NVRTC.
#ifndef EBTRAIN_CUDA_NVRTC_H
#define EBTRAIN_CUDA_NVRTC_H

#include "abi/nvrtc.h"

const eb_nvrtc *eb_nvrtc_resolve(uintptr_t library, const char **lacks);

// What a compilation made; image and log are malloc'ed, or NULL.
typedef struct eb_compiled {
	char *image, *log;
	size_t image_size, log_size;
	const char *call; // that failed
	int code;
} eb_compiled;

void eb_compile(const eb_nvrtc *t, const char *source, const char *name, int n, const char *const *options, eb_compiled *out);
const char *eb_nvrtc_error(const eb_nvrtc *t, int code);
int eb_nvrtc_version(const eb_nvrtc *t, int *major, int *minor);
int eb_nvrtc_archs(const eb_nvrtc *t, int *archs, int most, int *n);

#endif
