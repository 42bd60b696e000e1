// What Go calls of NVRTC. It is not named as NVIDIA's header, which is met first where
// CGO_CFLAGS names the folder of that.
#ifndef EBTRAIN_CUDA_COMPILER_H
#define EBTRAIN_CUDA_COMPILER_H

#include "abi/nvrtc.h"

const eb_nvrtc *eb_nvrtc_resolve(uintptr_t library, const char **lacks);

// What a compilation made; image, PTX and log are malloc'ed, or NULL.
typedef struct eb_compiled {
	char *image, *ptx, *log;
	size_t image_size, ptx_size, log_size;
	const char *call; // that failed
	int code;
} eb_compiled;

void eb_compile(const eb_nvrtc *t, const char *source, const char *name, int n, const char *const *options, int ptx, eb_compiled *out);
const char *eb_nvrtc_error(const eb_nvrtc *t, int code);
int eb_nvrtc_version(const eb_nvrtc *t, int *major, int *minor);
int eb_nvrtc_archs(const eb_nvrtc *t, int *archs, int most, int *n);

#endif
