//go:build cgo

#define _GNU_SOURCE // dlinfo
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

handle eb_open(const char *path, char *why, size_t len) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *error = dlerror();
		snprintf(why, len, "%s", error ? error : "dlopen failed");
	}
	return (handle)library;
}

void eb_close(handle library) { dlclose((void *)library); }
handle eb_symbol(handle library, const char *name) { return (handle)dlsym((void *)library, name); }

void eb_where(handle library, char *path, size_t len) {
	struct link_map *map = NULL;
	int failed = dlinfo((void *)library, RTLD_DI_LINKMAP, &map);
	snprintf(path, len, "%s", failed || !map->l_name ? "" : map->l_name);
}

size_t eb_call_size(handle f) { return ((size_t(*)(void))f)(); }
int eb_call_int(handle f, int *out) { return ((int (*)(int *))f)(out); }
