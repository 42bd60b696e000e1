//go:build cgo

#include "compiler.h"
#include "shim.h"

#include <stdlib.h>

const eb_nvrtc *eb_nvrtc_resolve(uintptr_t library, const char **lacks) {
	eb_nvrtc *t = calloc(1, sizeof *t);
	*lacks = "calloc";
	if (!t) return NULL;
#define X(result, name, args) \
	*lacks = #name; \
	if (!(*(handle *)&t->name = eb_symbol(library, #name))) { free(t); return NULL; }
	EB_NVRTC_FUNCTIONS(X)
#undef X
	return t;
}

const char *eb_nvrtc_error(const eb_nvrtc *t, int code) { return t->nvrtcGetErrorString(code); }
int eb_nvrtc_version(const eb_nvrtc *t, int *major, int *minor) { return t->nvrtcVersion(major, minor); }

int eb_nvrtc_archs(const eb_nvrtc *t, int *archs, int most, int *n) {
	int code = t->nvrtcGetNumSupportedArchs(n);
	if (code) return code;
	if (*n > most) {
		*n = 0;
		return 0;
	}
	return t->nvrtcGetSupportedArchs(archs);
}

// failed notes the call that failed.
static int failed(eb_compiled *out, const char *call, int code) {
	if (!code) return 0;
	out->call = call;
	out->code = code;
	return 1;
}

#define TRY(name, args) failed(out, #name, t->name args)

static void get_log(const eb_nvrtc *t, nvrtcProgram p, eb_compiled *out) {
	if (t->nvrtcGetProgramLogSize(p, &out->log_size) || !(out->log = malloc(out->log_size + 1)) || t->nvrtcGetProgramLog(p, out->log)) out->log_size = 0;
}

static void get_image(const eb_nvrtc *t, nvrtcProgram p, eb_compiled *out) {
	if (TRY(nvrtcGetCUBINSize, (p, &out->image_size))) return;
	out->image = malloc(out->image_size + 1);
	if (failed(out, "malloc", !out->image)) return;
	TRY(nvrtcGetCUBIN, (p, out->image));
}

static void get_ptx(const eb_nvrtc *t, nvrtcProgram p, eb_compiled *out) {
	if (TRY(nvrtcGetPTXSize, (p, &out->ptx_size))) return;
	out->ptx = malloc(out->ptx_size + 1);
	if (failed(out, "malloc", !out->ptx)) return;
	TRY(nvrtcGetPTX, (p, out->ptx));
}

void eb_compile(const eb_nvrtc *t, const char *source, const char *name, int n, const char *const *options, int ptx, eb_compiled *out) {
	nvrtcProgram p = NULL;
	if (TRY(nvrtcCreateProgram, (&p, source, name, 0, NULL, NULL))) return;
	int bad = TRY(nvrtcCompileProgram, (p, n, options));
	get_log(t, p, out);
	if (!bad) get_image(t, p, out);
	if (!out->code && ptx) get_ptx(t, p, out);
	int code = t->nvrtcDestroyProgram(&p);
	if (!out->code) failed(out, "nvrtcDestroyProgram", code);
}
