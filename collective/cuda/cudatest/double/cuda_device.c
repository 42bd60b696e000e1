// Devices and their primary contexts, and the tables that other doubles use.
#include "cuda.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t progress = PTHREAD_COND_INITIALIZER;

const char *const STREAM = "streams", *const EVENT = "events", *const MODULE = "modules", *const FUNCTION = "functions", *const GRAPH = "graphs",
	*const EXEC = "executable graphs", *const CONTEXT = "contexts";

context contexts[MOST_DEVICES];
__thread context *current;
static bool ready;

bool live(const void *handle, const char *kind) { return handle && ((const object *)handle)->kind == kind; }
bool initialised(void) { return __atomic_load_n(&ready, __ATOMIC_ACQUIRE); }

int usable(void) {
	if (!current || !live(current, CONTEXT)) return INVALID_CONTEXT;
	return __atomic_load_n(&current->sticky, __ATOMIC_ACQUIRE);
}

// visible fills the list of devices that CUDA_VISIBLE_DEVICES leaves: it ends at
// the first that is not there.
static int visible(int *list) {
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	int n = 0;
	if (!text) {
		for (; n < knobs.devices; n++) list[n] = n;
		return n;
	}
	while (*text) {
		char *end;
		long d = strtol(text, &end, 10);
		if (end == text || d < 0 || d >= knobs.devices || n == MOST_DEVICES) break;
		list[n++] = (int)d;
		text = *end == ',' ? end + 1 : end;
	}
	return n;
}

// physical is the device that an ordinal stands for, or -1.
static int physical(int ordinal) {
	int list[MOST_DEVICES], n = visible(list);
	return ordinal >= 0 && ordinal < n ? list[ordinal] : -1;
}

CUresult cuInit(unsigned int flags) {
	int failed = fault(__func__), list[MOST_DEVICES];
	if (failed) return failed;
	if (flags) return INVALID_VALUE;
	if (!visible(list)) return NO_DEVICE;
	__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
	return OK;
}

CUresult cuDriverGetVersion(int *version) {
	int failed = fault(__func__);
	if (failed) return failed;
	*version = knobs.driver;
	return OK;
}

static const struct { int code; const char *name, *text; } codes[] = {
	{0, "CUDA_SUCCESS", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
	{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{600, "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
	{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
	{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"},
	{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
	{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
	{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
	{907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
	{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
	{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

// Names and texts are asked for while an error is reported, so no fault is
// ordered for them.
CUresult cuGetErrorName(CUresult error, const char **text) {
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].code == error) return *text = codes[i].name, OK;
	*text = NULL;
	return INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].code == error) return *text = codes[i].text, OK;
	*text = NULL;
	return INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *n) {
	CALL();
	int list[MOST_DEVICES];
	*n = visible(list);
	return OK;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	CALL();
	if (physical(ordinal) < 0) return INVALID_DEVICE;
	*device = ordinal;
	return OK;
}

#define DEVICE_CALL(device) \
	CALL(); \
	int p = physical(device); \
	if (p < 0) return INVALID_DEVICE

CUresult cuDeviceGetName(char *name, int len, CUdevice device) {
	DEVICE_CALL(device);
	snprintf(name, (size_t)len, "%s", knobs.name);
	return OK;
}

// whole is the number of the GPU of which this device is a part.
static int whole(int p) { return knobs.parts > 1 ? p / knobs.parts : p; }

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device) {
	DEVICE_CALL(device);
	snprintf(id, (size_t)len, "0000:%02X:00.0", 0x10 + whole(p));
	return OK;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
	DEVICE_CALL(device);
	memcpy(uuid->bytes, "ebtrain's double", 16);
	uuid->bytes[15] = (char)whole(p);
	return OK;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
	DEVICE_CALL(device);
	memcpy(uuid->bytes, knobs.parts > 1 ? "a part of double" : "ebtrain's double", 16);
	uuid->bytes[15] = (char)p;
	return OK;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
	DEVICE_CALL(device);
	*bytes = knobs.memory;
	return OK;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
	DEVICE_CALL(device);
	switch (attribute) {
	case EB_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = knobs.sms; return OK;
	case EB_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 12; return OK; // little, as whole caches are filled to pass time
	case EB_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = knobs.capability / 10; return OK;
	case EB_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = knobs.capability % 10; return OK;
	}
	return INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device) {
	DEVICE_CALL(device);
	context *c = &contexts[p];
	pthread_mutex_lock(&lock);
	if (!c->retained++) {
		c->head.kind = CONTEXT;
		c->device = device;
	}
	pthread_mutex_unlock(&lock);
	count(CONTEXT, 1);
	*ctx = c;
	return OK;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
	int failed = fault(__func__), p = physical(device);
	if (p < 0) return INVALID_DEVICE;
	context *c = &contexts[p];
	pthread_mutex_lock(&lock);
	if (!c->retained) {
		pthread_mutex_unlock(&lock);
		return INVALID_CONTEXT;
	}
	if (!--c->retained) {
		c->head.kind = NULL;
		c->sticky = 0;
	}
	pthread_mutex_unlock(&lock);
	count(CONTEXT, -1);
	return failed;
}

// cuCtxGetCurrent is a load of the thread's own: no fault can be ordered for it.
CUresult cuCtxGetCurrent(CUcontext *ctx) {
	if (!initialised()) return NOT_INITIALIZED;
	*ctx = current;
	return OK;
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
	CALL();
	if (ctx && !live(ctx, CONTEXT)) return INVALID_CONTEXT;
	current = ctx;
	return OK;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
	CONTEXT_CALL();
	*least = 0;
	*greatest = -5;
	return OK;
}

CUresult cuCtxSynchronize(void) {
	CONTEXT_CALL();
	int bad = forbidden();
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	bad = current->captures ? CAPTURE_UNSUPPORTED : 0; // also of other threads
	if (!bad) wait_idle(current);
	pthread_mutex_unlock(&lock);
	return bad ? bad : usable();
}

// What other doubles use.

static int enqueue(void *s, const char *label, void (*run)(void *), void (*release)(void *), void *arg) {
	if (!live(s, STREAM)) return INVALID_HANDLE;
	int bad = __atomic_load_n(&((stream *)s)->context->sticky, __ATOMIC_ACQUIRE);
	return bad ? bad : put(s, new_task(label, run, release, arg));
}

static int capturing(void *s) {
	pthread_mutex_lock(&lock);
	int yes = live(s, STREAM) && ((stream *)s)->capture;
	pthread_mutex_unlock(&lock);
	return yes;
}

static int range(const void *p, size_t n) { return inside(p, n); }
static int device(void) { return current && live(current, CONTEXT) ? current->device : -1; }

static void sticky(void *s, int code) {
	if (live(s, STREAM)) __atomic_store_n(&((stream *)s)->context->sticky, code, __ATOMIC_RELEASE);
}

static int broken(void) { return current ? __atomic_load_n(&current->sticky, __ATOMIC_ACQUIRE) : 0; }

const eb_machine_table eb_machine_exports = {enqueue, capturing, fault, count, range, device, sticky, broken};

// eb_guards ends the process if something was written beside live memory.
void eb_guards(void) {
	pthread_mutex_lock(&lock);
	check_guards();
	pthread_mutex_unlock(&lock);
}
