// Memory, of devices and pinned: filled with NaN, between pages that cannot be
// touched, and what is left of its own last page is looked at when it is freed.
#include "cuda.h"

#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 256, MARK = 0xA5, HUGE = 2 << 20 };

typedef struct piece {
	char *map, *pages, *data; // the data are at the end of whole pages
	size_t map_size, whole, size;
	context *context; // NULL: pinned
	struct piece *next;
} piece;
static piece *pieces;

static const char *kind(const piece *p) { return p->context ? "device memory" : "pinned memory"; }

static size_t up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// lay maps a piece: a page without access, the data at the end of whole pages,
// and a page without access. What is large asks for huge pages, or the kernel would
// zero it in pages of 4 KB, which takes forty times as long.
static piece *lay(size_t size, context *c) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = up(size, ALIGN);
	piece *p = calloc(1, sizeof *p);
	p->whole = up(room, page);
	size_t unit = p->whole < HUGE ? page : HUGE;
	p->map_size = p->whole + unit + page;
	p->map = mmap(NULL, p->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	p->pages = (char *)up((size_t)p->map + page, unit);
	if (p->map == MAP_FAILED || mprotect(p->pages, p->whole, PROT_READ | PROT_WRITE)) die("no memory for %zu bytes", size);
	if (unit == HUGE) madvise(p->pages, p->whole, MADV_HUGEPAGE); // refused where there are none
	p->data = p->pages + p->whole - room;
	p->size = size;
	p->context = c;
	memset(p->pages, MARK, p->whole);
	memset(p->data, 0xFF, size);
	return p;
}

static void check_guard(const piece *p) {
	const unsigned char *from = (unsigned char *)p->pages, *to = from + p->whole;
	for (const unsigned char *c = from; c < to; c++) {
		if (c == (unsigned char *)p->data) c += p->size;
		if (c < to && *c != MARK) die("%s of %zu bytes: byte %td was written", kind(p), p->size, c - (unsigned char *)p->data);
	}
}

void check_guards(void) {
	for (const piece *p = pieces; p; p = p->next) check_guard(p);
}

static void *take(size_t size, context *c) {
	piece *p = lay(size, c);
	pthread_mutex_lock(&lock);
	p->next = pieces;
	pieces = p;
	if (c) c->used += size;
	pthread_mutex_unlock(&lock);
	count(kind(p), 1);
	return p->data;
}

static int give(void *data, bool device) {
	pthread_mutex_lock(&lock);
	for (piece **at = &pieces; *at; at = &(*at)->next) {
		piece *p = *at;
		if (p->data != data || !p->context == device) continue;
		*at = p->next;
		if (p->context) p->context->used -= p->size;
		check_guard(p);
		pthread_mutex_unlock(&lock);
		count(kind(p), -1);
		munmap(p->map, p->map_size);
		free(p);
		return OK;
	}
	pthread_mutex_unlock(&lock);
	return INVALID_VALUE;
}

bool inside(const void *at, size_t n) {
	const char *a = at;
	pthread_mutex_lock(&lock);
	bool found = false;
	for (piece *p = pieces; p && !found; p = p->next) found = a >= p->data && a <= p->data + p->size && n <= (size_t)(p->data + p->size - a);
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
	CONTEXT_CALL();
	pthread_mutex_lock(&lock);
	*total = knobs.memory;
	*free = knobs.memory > current->used ? knobs.memory - current->used : 0;
	pthread_mutex_unlock(&lock);
	return OK;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
	CONTEXT_CALL();
	int bad = forbidden();
	if (bad) return bad;
	if (!bytes) return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	bool fits = bytes <= knobs.memory && current->used <= knobs.memory - bytes;
	pthread_mutex_unlock(&lock);
	if (!fits) return OUT_OF_MEMORY;
	*p = (CUdeviceptr)(uintptr_t)take(bytes, current);
	return OK;
}

// Freeing waits for the device, as the real one does.
CUresult cuMemFree_v2(CUdeviceptr p) {
	END_CALL();
	int bad = forbidden();
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	wait_idle(current);
	pthread_mutex_unlock(&lock);
	bad = p ? give((void *)(uintptr_t)p, true) : OK;
	return bad ? bad : END;
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned int flags) {
	CONTEXT_CALL();
	int bad = forbidden();
	if (bad) return bad;
	if (!bytes || flags & ~7u) return INVALID_VALUE;
	*p = take(bytes, NULL);
	return OK;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags) {
	CONTEXT_CALL();
	if (flags || !inside(host, 1)) return INVALID_VALUE;
	*device = (CUdeviceptr)(uintptr_t)host;
	return OK;
}

CUresult cuMemFreeHost(void *p) {
	END_CALL();
	int bad = forbidden();
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	wait_idle(current);
	pthread_mutex_unlock(&lock);
	bad = give(p, false);
	return bad ? bad : END;
}

// Copies and fills are tasks with all they need in their argument.
typedef struct move {
	char *to;
	const char *from;
	unsigned value, width; // a fill, if width is not 0
	size_t n;
} move;

static void run_move(void *arg) {
	const move *m = arg;
	if (!m->width) memcpy(m->to, m->from, m->n);
	else if (m->width == 1) memset(m->to, (int)m->value, m->n);
	else for (size_t i = 0; i < m->n; i++) ((uint32_t *)(void *)m->to)[i] = m->value;
}

static int put_move(const char *label, CUstream s, move m) {
	int bad = check_stream(s);
	if (bad) return bad;
	size_t bytes = m.n * (m.width ? m.width : 1);
	if (!inside(m.to, bytes) || (m.from && !inside(m.from, bytes)) || (m.width && (uintptr_t)m.to % m.width)) return INVALID_VALUE;
	move *copy = malloc(sizeof *copy);
	*copy = m;
	await_room(s);
	bad = put(s, new_task(label, run_move, free, copy));
	if (bad) free(copy);
	return bad;
}

#define AT(p) ((char *)(uintptr_t)(p))

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) {
	CONTEXT_CALL();
	return put_move(__func__, s, (move){.to = AT(to), .from = from, .n = n});
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) {
	CONTEXT_CALL();
	return put_move(__func__, s, (move){.to = to, .from = AT(from), .n = n});
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
	CONTEXT_CALL();
	if (to < from + n && from < to + n && n) return INVALID_VALUE; // overlap: undefined on a device
	return put_move(__func__, s, (move){.to = AT(to), .from = AT(from), .n = n});
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
	CONTEXT_CALL();
	return put_move(__func__, s, (move){.to = AT(to), .value = value, .width = 1, .n = n});
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream s) {
	CONTEXT_CALL();
	return put_move(__func__, s, (move){.to = AT(to), .value = value, .width = 4, .n = n});
}
