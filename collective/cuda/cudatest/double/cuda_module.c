// Modules: shared objects, as the double of NVRTC makes them, opened from memory.
// A kernel NAME is a function NAME__run(grid, block, order, args).
#include "cuda.h"
#include "image.h"

#include <sys/mman.h>
#include <unistd.h>

typedef void kernel(unsigned grid, unsigned block, int order, const void *args);

typedef struct CUmod_st {
	object head;
	void *library;
	int file;
	struct CUfunc_st *functions;
} module;

typedef struct CUfunc_st {
	object head;
	module *module;
	kernel *run;
	unsigned args, block; // bytes of the argument; the most threads of a block, 0: unknown
	char name[256];
	struct CUfunc_st *next;
} function;

struct shim_calls;
extern const struct shim_calls shim_calls; // cuda_shim.c

// open_image opens a shared object from memory. The file stays open, so that its
// name, by which the linker knows it, is not used again.
static int open_image(module *m, const char *data, size_t n) {
	m->file = memfd_create("kernels", MFD_CLOEXEC);
	if (m->file < 0) return OUT_OF_MEMORY;
	for (size_t at = 0; at < n;) {
		ssize_t w = write(m->file, data + at, n - at);
		if (w <= 0) return OUT_OF_MEMORY;
		at += (size_t)w;
	}
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", m->file);
	m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!m->library) return INVALID_IMAGE;
	const struct shim_calls **calls = dlsym(m->library, "shim_calls_1");
	if (!calls) return INVALID_IMAGE;
	*calls = &shim_calls;
	return OK;
}

// runs says whether a device runs code for an architecture: its own or an older one of the
// generation, neither of which is Tegra's.
static int runs(int arch, int device) {
	static const int tegra[] = {53, 62, 72, 87, 101, 110};
	if (arch == device) return 1;
	for (size_t i = 0; i < sizeof tegra / sizeof *tegra; i++)
		if (arch == tegra[i] || device == tegra[i]) return 0;
	return arch / 10 == device / 10 && arch < device;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
	CONTEXT_CALL();
	int bad = forbidden();
	if (bad) return bad;
	image_head head;
	memcpy(&head, image, sizeof head);
	if (memcmp(head.magic, IMAGE_MAGIC, sizeof head.magic)) return INVALID_IMAGE;
	int arch = (int)head.arch;
	if (!runs(arch, knobs.capability)) return NO_BINARY;
	module *m = calloc(1, sizeof *m);
	m->head.kind = MODULE;
	bad = open_image(m, (const char *)image + sizeof head, head.size);
	if (bad) {
		fprintf(stderr, "double: a module cannot be opened: %s\n", dlerror());
		if (m->file >= 0) close(m->file);
		free(m);
		return bad;
	}
	count(MODULE, 1);
	*out = m;
	return OK;
}

CUresult cuModuleUnload(CUmodule m) {
	END_CALL();
	int bad = forbidden();
	if (bad) return bad;
	if (!live(m, MODULE)) return INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	wait_idle(current);
	m->head.kind = NULL;
	for (function *f = m->functions; f; f = f->next) f->head.kind = NULL;
	pthread_mutex_unlock(&lock);
	dlclose(m->library);
	close(m->file);
	count(MODULE, -1);
	return END;
}

static void *symbol(const module *m, const char *name, const char *what) {
	char full[300];
	snprintf(full, sizeof full, "%s__%s", name, what);
	return dlsym(m->library, full);
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
	CONTEXT_CALL();
	if (!live(m, MODULE)) return INVALID_HANDLE;
	void *run = symbol(m, name, "run");
	if (!run) return NOT_FOUND;
	function *f = calloc(1, sizeof *f);
	f->head.kind = FUNCTION;
	f->module = m;
	*(void **)&f->run = run;
	const unsigned *args = symbol(m, name, "args"), *block = symbol(m, name, "block");
	f->args = args ? *args : 0;
	f->block = block ? *block : 1024;
	snprintf(f->name, sizeof f->name, "%s", name);
	pthread_mutex_lock(&lock);
	f->next = m->functions;
	m->functions = f;
	pthread_mutex_unlock(&lock);
	*out = f;
	return OK;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f) {
	CONTEXT_CALL();
	int bad = forbidden();
	if (bad) return bad;
	if (!live(f, FUNCTION)) return INVALID_HANDLE;
	if (attribute != EB_CU_FUNC_ATTRIBUTE_NUM_REGS) return INVALID_VALUE;
	*value = 32;
	return OK;
}

#ifndef BEFORE_12_4
CUresult cuFuncLoad(CUfunction f) {
	CONTEXT_CALL();
	int bad = forbidden();
	if (bad) return bad;
	return live(f, FUNCTION) ? OK : INVALID_HANDLE;
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size) {
	CONTEXT_CALL();
	if (!live(f, FUNCTION)) return INVALID_HANDLE;
	if (index > 0 || !f->args) return INVALID_VALUE;
	*offset = 0;
	*size = f->args;
	return OK;
}
#endif

// A launch holds a copy of the arguments, as the real one does.
typedef struct launch {
	kernel *run;
	unsigned grid, block;
	_Alignas(16) char args[];
} launch;

static void run_launch(void *arg) {
	const launch *l = arg;
	int order = knobs.order == 2 ? (int)(draw() & 1) : knobs.order;
	l->run(l->grid, l->block, order, l->args);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
		unsigned int shared, CUstream s, void **params, void **extra) {
	CONTEXT_CALL();
	int bad = check_stream(s);
	if (bad) return bad;
	if (!live(f, FUNCTION)) return INVALID_HANDLE;
	if (!gx || !bx || bx > f->block || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared > 48 << 10 || extra || (f->args && !params)) return INVALID_VALUE;
	launch *l = aligned_alloc(16, (sizeof *l + f->args + 15) / 16 * 16);
	l->run = f->run;
	l->grid = gx;
	l->block = bx;
	if (f->args) memcpy(l->args, params[0], f->args);
	await_room(s);
	bad = put(s, new_task(f->name, run_launch, free, l));
	if (bad) free(l);
	return bad;
}
