//go:build cgo && !nodnnl

#define _GNU_SOURCE // dlsym's neighbours
#include "api.h"
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// short_spins makes the workers of GNU OpenMP sleep after some microseconds
// without work, not after 3 ms: all that time they take a core from whoever
// computes what follows a convolution. libgomp reads its environment once, when
// it is loaded, so this comes before. What the user says stays.
static void short_spins(void) {
	const char *const user[] = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"};
	for (int i = 0; i < 2; i++) {
		const char *v = getenv(user[i]);
		if (v && *v) return;
	}
	setenv("GOMP_SPINCOUNT", "1000", 1);
}

// missing says whether dlopen's error is about the library itself, not about
// one that it needs or about its contents.
static int missing(const char *library, const char *error) {
	const size_t n = strlen(library);
	return strncmp(error, library, n) == 0 && strstr(error + n, "No such file or directory") != NULL;
}

// resolve fills the table, and returns the name of the first function that the
// library has not, or NULL.
static const char *resolve(void *library, eb_api *api) {
#define X(f) \
	if (!(*(void **)&api->f = dlsym(library, "dnnl_" #f))) return "dnnl_" #f;
	EB_DNNL_BOTH(X)
	EB_DNNL_VERSIONED(X)
#undef X
	// dlsym looks in the libraries that this one needs, too.
#define X(result, f, args) \
	if (!(*(void **)&api->f = dlsym(library, #f))) return #f;
	EB_OMP(X)
#undef X
	return NULL;
}

int eb_api_open(const char *name, eb_api **out, char *why, size_t len) {
	short_spins();
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *error = dlerror();
		snprintf(why, len, "%s", error ? error : "dlopen failed");
		return missing(name, why) ? EB_MISSING : EB_BROKEN;
	}
	// The version first: another major lacks functions, too.
	__typeof__(dnnl_version) *version = NULL;
	*(void **)&version = dlsym(library, "dnnl_version");
	if (version && version()->major != DNNL_VERSION_MAJOR) {
		const dnnl_version_t *v = version();
		snprintf(why, len, "it is oneDNN %d.%d.%d, and this program was built for oneDNN %d", v->major, v->minor, v->patch, DNNL_VERSION_MAJOR);
		return EB_BROKEN;
	}
	eb_api *api = calloc(1, sizeof *api);
	if (!api) {
		snprintf(why, len, "out of memory");
		return EB_BROKEN;
	}
	const char *lacks = resolve(library, api);
	if (lacks) {
		snprintf(why, len, "it has no function %s", lacks);
		free(api);
		return EB_BROKEN;
	}
	*out = api;
	return EB_LOADED;
}

// The library stays: the threads of its OpenMP run code of it until the process
// ends.
void eb_api_free(eb_api *api) { free(api); }
