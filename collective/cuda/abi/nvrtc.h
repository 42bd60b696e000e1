// The part of NVRTC's ABI that is called, declared as the driver's is in driver.h.
#ifndef EBTRAIN_CUDA_ABI_NVRTC_H
#define EBTRAIN_CUDA_ABI_NVRTC_H

#include <stddef.h>
#include <stdint.h>

#ifndef EB_REAL_NVRTC_H
typedef int nvrtcResult; // an enumeration
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

enum { EB_NVRTC_SUCCESS = 0 };

// Functions of every NVRTC since CUDA 11.2: result, name, arguments.
#define EB_NVRTC_FUNCTIONS(X) \
	X(const char *, nvrtcGetErrorString, (nvrtcResult code)) \
	X(nvrtcResult, nvrtcVersion, (int *major, int *minor)) \
	X(nvrtcResult, nvrtcGetNumSupportedArchs, (int *n)) \
	X(nvrtcResult, nvrtcGetSupportedArchs, (int *archs)) \
	X(nvrtcResult, nvrtcCreateProgram, (nvrtcProgram *p, const char *source, const char *name, int headers, \
			const char *const *texts, const char *const *names)) \
	X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *p)) \
	X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram p, int n, const char *const *options)) \
	X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram p, size_t *n)) \
	X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram p, char *image)) \
	X(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram p, size_t *n)) \
	X(nvrtcResult, nvrtcGetPTX, (nvrtcProgram p, char *text)) \
	X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram p, size_t *n)) \
	X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram p, char *log))

typedef struct eb_nvrtc {
#define X(result, name, args) result(*name) args;
	EB_NVRTC_FUNCTIONS(X)
#undef X
} eb_nvrtc;

#endif
