// A double of libnccl. Ranks, as threads of one process or as processes, meet in
// a file of shared memory that the unique id names, and really exchange and
// reduce, in the order of their streams: an operation is a host function on the
// stream of libcuda's double, whose device memory is the host's.
//
// Faithful to the real one in its ABI, in what is asynchronous, and in how it
// goes wrong: it never compares what ranks start, so that a difference hangs; a
// peer that dies does so silently; init, every operation and finalize are in
// progress for a while; an error of a call stays with the communicator until its
// abort, and of a group that has one nothing is launched; abort makes operations
// leave, and then waits, as destroy does, for every graph that captured one. Not faithful in the order of
// sums (by rank) and in time. Two calls at once on a communicator, memory freed
// that is registered, and registered memory beside other memory in one
// collective, which are undefined in the real one, end the process with a
// message.
//
// Knobs, read from the environment when they are needed:
//
//	EBDOUBLE_NCCL_VERSION   what ncclGetVersion says (22809)
//	EBDOUBLE_NCCL_INIT_MS   how long init takes at least (2)
//	EBDOUBLE_NCCL_FAIL      RANK:N: the N-th operation of RANK, from 0, hangs and
//	                      the communicator has an asynchronous error
//	EBDOUBLE_NCCL_HANG      RANK:N: the N-th operation of RANK hangs silently
//	EBDOUBLE_NCCL_STUCK     RANK:N:MS: the N-th operation of RANK cannot be launched for so
//	                      long, or until abort, as where the driver's queue is full: before
//	                      2.23 its call does not return, since then it is in progress
//	EBDOUBLE_NCCL_REPORT    1: ranks that differ are an asynchronous error
//	EBDOUBLE_NCCL_NVLS      a file: where NCCL_NVLS_ENABLE as init saw it is written
//
// The calls that can be made to fail are those of the API and ncclInit, the
// thread of an init.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "double.h"

enum { OK, CUDA, SYSTEM, INTERNAL, ARGUMENT, USAGE, REMOTE, PROGRESS };
enum { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16 };
enum { SUM, PROD, MAX, MIN, AVG };
enum { ALLREDUCE = 1, REDUCESCATTER, ALLGATHER, BROADCAST, SEND, RECV };

typedef int result;
typedef struct { char b[128]; } unique_id;
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cga, min_ctas, max_ctas;
	const char *net;
	int split, traffic; // traffic is heeded from 2.26 on, whatever the version says
} config;

// ---- shared memory

#define CHUNK (64 << 10)

typedef struct { // from one rank to another: a ring of bytes
	_Atomic uint64_t put, got;
	char pad[48];
	char data[CHUNK];
} channel;

typedef struct {
	atomic_int nranks, joined, left; // left: finalized or aborted
	char pad[4096 - 12];
	channel to[]; // of rank a to rank b at a*nranks+b
} shared;

// ---- communicators

typedef struct op op;

typedef struct {
	int rank, nranks, blocking;
	char path[512];
	shared *sh;
	size_t bytes;
	pthread_t init;
	int initialising;
	atomic_int state; // what GetAsyncError says
	atomic_int abort, busy;
	atomic_int held; // operations that may still run: queued, or part of a graph
	atomic_uint tickets, turn; // eager operations run in the order of their calls
	pthread_mutex_t running;
	atomic_int ops;  // operations that have begun
	int finalising, connected, launches;
	op *late;        // what another thread of the real one's would launch
	struct timespec ready;
	struct registration *registrations;
	char last[256];
} comm;

typedef struct { // what every message begins with
	uint32_t kind, dtype, op, root;
	uint64_t bytes;
	int64_t placed; // offset in registered memory, or -1
	uint64_t number;
	char pad[24];
} header;

struct op {
	comm *c;
	int kind, dtype, op, root, captured;
	unsigned ticket;
	const char *send;
	char *recv;
	size_t count; // of send; of recv for ReduceScatter
	void *stream;
	op *next; // others of its group
};

static void die(const char *what) {
	fprintf(stderr, "nccl double: %s\n", what);
	abort();
}

static int fail(comm *c, int r, const char *format, ...) {
	va_list v;
	va_start(v, format);
	vsnprintf(c->last, sizeof c->last, format, v);
	va_end(v);
	return r;
}

static int knob(const char *name, int otherwise) {
	const char *s = getenv(name);
	return s ? atoi(s) : otherwise;
}

// struck says whether a knob RANK:N means this operation.
static int struck(const char *name, int rank, int n) {
	const char *s = getenv(name);
	int r, k;
	return s && sscanf(s, "%d:%d", &r, &k) == 2 && r == rank && k == n;
}

// stuck is how many milliseconds a rank's N-th operation cannot be launched.
static int stuck(int rank, int n) {
	const char *s = getenv("EBDOUBLE_NCCL_STUCK");
	int r, k, ms;
	return s && sscanf(s, "%d:%d:%d", &r, &k, &ms) == 3 && r == rank && k == n ? ms : 0;
}

static void nap(int *turns) {
	if (++*turns < 200) sched_yield();
	else usleep(*turns < 2000 ? 20 : 500);
}

// FAULT begins every function: it may be made to fail.
#define FAULT() do { int fault_ = eb_machine()->fault(__func__); if (fault_) return fault_; } while (0)

// END begins those that free something: they do, also where they are made to fail or the
// device is broken.
#define END() \
	int ended = eb_machine()->fault(__func__); \
	if (!ended && eb_machine()->broken()) ended = CUDA

static void enter(comm *c) {
	if (atomic_exchange(&c->busy, 1)) die("two calls at once on a communicator");
}
static int leave(comm *c, int r) {
	atomic_store(&c->busy, 0);
	return r;
}

// ---- registered memory

typedef struct registration { struct memory *m; struct registration *next; } registration;
typedef struct memory { char *p; size_t n; int registered; struct memory *next; } memory;
static memory *memories;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; // of memories

// placed is the offset of p in memory that is registered, or -1.
static int64_t placed(const char *p) {
	int64_t at = -1;
	pthread_mutex_lock(&mu);
	for (memory *m = memories; m; m = m->next)
		if (p >= m->p && p < m->p + m->n && m->registered) at = p - m->p;
	pthread_mutex_unlock(&mu);
	return at;
}

// driver is a function of libcuda's that takes a pointer and a size.
static int (*driver(const char *name))(void *, size_t) {
	void *h = dlopen("libcuda.so.1", RTLD_NOW);
	return (int (*)(void *, size_t))dlsym(h, name);
}

result ncclMemAlloc(void **p, size_t n) {
	FAULT();
	unsigned long long d;
	n = (n + (2 << 20) - 1) / (2 << 20) * (2 << 20);
	if (driver("cuMemAlloc_v2")(&d, n)) return CUDA;
	memory *m = calloc(1, sizeof *m);
	m->p = (char *)(uintptr_t)d, m->n = n;
	pthread_mutex_lock(&mu);
	m->next = memories, memories = m;
	pthread_mutex_unlock(&mu);
	eb_machine()->count("memory of NCCL's", 1);
	*p = m->p;
	return OK;
}

result ncclMemFree(void *p) {
	END();
	pthread_mutex_lock(&mu);
	memory **at = &memories;
	while (*at && (*at)->p != p) at = &(*at)->next;
	memory *m = *at;
	if (m) *at = m->next;
	pthread_mutex_unlock(&mu);
	if (!m) return ARGUMENT;
	if (m->registered) die("memory is freed that is registered");
	int r = driver("cuMemFree_v2")(p, 0);
	free(m);
	eb_machine()->count("memory of NCCL's", -1);
	return ended ? ended : r ? CUDA : OK;
}

result ncclCommRegister(comm *c, void *p, size_t n, void **handle) {
	FAULT();
	enter(c);
	pthread_mutex_lock(&mu);
	memory *m = memories;
	while (m && ((char *)p < m->p || (char *)p + n > m->p + m->n)) m = m->next;
	if (m) m->registered++;
	pthread_mutex_unlock(&mu);
	if (!m) return leave(c, fail(c, USAGE, "memory is not from ncclMemAlloc"));
	eb_machine()->count("NCCL registration", 1);
	registration *g = malloc(sizeof *g);
	*g = (registration){m, c->registrations};
	*handle = c->registrations = g;
	return leave(c, OK);
}

static void deregister(comm *c, registration *g) {
	registration **at = &c->registrations;
	while (*at && *at != g) at = &(*at)->next;
	if (!*at) die("a registration is ended that is not of this communicator");
	*at = g->next;
	pthread_mutex_lock(&mu);
	g->m->registered--;
	pthread_mutex_unlock(&mu);
	free(g);
	eb_machine()->count("NCCL registration", -1);
}

result ncclCommDeregister(comm *c, void *handle) {
	END();
	enter(c);
	deregister(c, handle);
	return leave(c, ended);
}

// ---- data

static size_t width(int dtype) {
	switch (dtype) {
	case I8: case U8: return 1;
	case F16: case BF16: return 2;
	case I32: case U32: case F32: return 4;
	}
	return 8;
}

static float wide(uint16_t h) { uint32_t u = (uint32_t)h << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t narrow(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	return f != f ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

#define EACH(T) do { \
	T *d = dst; const T *s = src; \
	for (size_t i = 0; i < n; i++) \
		d[i] = op == MAX ? (s[i] > d[i] ? s[i] : d[i]) : op == MIN ? (s[i] < d[i] ? s[i] : d[i]) : op == PROD ? (T)(d[i] * s[i]) : (T)(d[i] + s[i]); \
} while (0)

static void combine(int dtype, int op, void *dst, const void *src, size_t n) {
	switch (dtype) {
	case U8: EACH(uint8_t); break;
	case I32: EACH(int32_t); break;
	case I64: EACH(int64_t); break;
	case F32: EACH(float); break;
	case F64: EACH(double); break;
	case BF16: {
		uint16_t *d = dst;
		const uint16_t *s = src;
		for (size_t i = 0; i < n; i++) { // rounded at every step, as there
			float a = wide(d[i]), b = wide(s[i]);
			d[i] = narrow(op == MAX ? (b > a ? b : a) : op == MIN ? (b < a ? b : a) : a + b);
		}
		break;
	}
	default: die("an element type that the double does not have");
	}
}

// premultiply is what ncclAvg does first.
static void premultiply(int dtype, void *p, size_t n, int by) {
	for (size_t i = 0; i < n; i++)
		switch (dtype) {
		case F32: ((float *)p)[i] *= 1.f / by; break;
		case F64: ((double *)p)[i] *= 1. / by; break;
		case BF16: ((uint16_t *)p)[i] = narrow(wide(((uint16_t *)p)[i]) * wide(narrow(1.f / by))); break;
		}
}

// ---- transfers

typedef struct {
	int out, peer;
	char *p;
	size_t n, at; // header and data together
	header h, theirs;
	int done;
} transfer;

static channel *from_to(comm *c, int a, int b) { return &c->sh->to[a * c->nranks + b]; }

// hang waits for an abort.
static void hang(comm *c) {
	for (int turns = 0; !c->abort;) nap(&turns);
}

static void differs(comm *c, transfer *t) {
	if (t->h.kind < SEND && t->h.kind == t->theirs.kind && t->h.placed != t->theirs.placed)
		die("registered memory beside other memory, or at another offset, in one collective");
	if (t->h.kind == t->theirs.kind && t->h.dtype == t->theirs.dtype && t->h.op == t->theirs.op && t->h.root == t->theirs.root &&
			t->h.bytes == t->theirs.bytes)
		return;
	if (knob("EBDOUBLE_NCCL_REPORT", 0)) {
		fail(c, 0, "ranks %d and %d differ", c->rank, t->peer);
		c->state = INTERNAL;
	}
	hang(c);
}

// step moves what can be moved of t.
static int step(comm *c, transfer *t) {
	size_t before = t->at, total = sizeof(header) + t->n;
	channel *ch = t->out ? from_to(c, c->rank, t->peer) : from_to(c, t->peer, c->rank);
	while (t->at < total) {
		uint64_t put = ch->put, got = ch->got;
		char *mine = t->at < sizeof(header) ? (char *)(t->out ? &t->h : &t->theirs) + t->at : t->p + t->at - sizeof(header);
		size_t n = t->at < sizeof(header) ? sizeof(header) - t->at : total - t->at;
		size_t pos = (t->out ? put : got) % CHUNK, room = t->out ? CHUNK - (put - got) : put - got;
		if (n > room) n = room;
		if (n > CHUNK - pos) n = CHUNK - pos;
		if (!n) break;
		if (t->out) memcpy(ch->data + pos, mine, n), ch->put = put + n;
		else memcpy(mine, ch->data + pos, n), ch->got = got + n;
		t->at += n;
		if (!t->out && t->at == sizeof(header)) differs(c, t);
		if (c->abort) return 1;
	}
	t->done = t->at == total;
	return t->at != before;
}

// exchange does all transfers; between two ranks, those of one direction in order.
static void exchange(comm *c, transfer *ts, int n) {
	for (int left = n, turns = 0; left && !c->abort;) {
		int moved = 0;
		left = 0;
		for (int i = 0; i < n; i++) {
			int waits = ts[i].done;
			for (int j = 0; j < i && !waits; j++)
				waits = !ts[j].done && ts[j].out == ts[i].out && ts[j].peer == ts[i].peer;
			if (!waits) moved |= step(c, &ts[i]);
			left += !ts[i].done;
		}
		if (moved) turns = 0;
		else nap(&turns);
	}
}

static transfer transfer_of(op *o, int out, int peer, const char *p, size_t n) {
	transfer t = {.out = out, .peer = peer, .p = (char *)p, .n = n};
	int p2p = o->kind == SEND || o->kind == RECV;
	t.h = (header){p2p ? SEND : o->kind, o->dtype, o->op, p2p ? 0 : o->root, n, -1, 0, {0}};
	if (!p2p) t.h.placed = placed(o->kind == ALLGATHER ? o->recv : o->send);
	return t;
}

static void collective(op *o) {
	comm *c = o->c;
	int n = c->nranks, k = 0;
	size_t bytes = o->count * width(o->dtype);
	transfer *ts = calloc(2 * n, sizeof *ts);
	char **in = calloc(n, sizeof *in);
	for (int q = 0; q < n; q++) {
		const char *out = o->send;
		if (o->kind == REDUCESCATTER) out += q * bytes;
		if (o->kind == ALLGATHER) in[q] = o->recv + q * bytes;
		else if (o->kind == BROADCAST) in[q] = o->recv;
		else in[q] = malloc(bytes + 1);
		if (q == c->rank) {
			if (in[q] != out && !(o->kind == BROADCAST && o->root != q)) memmove(in[q], out, bytes);
			continue;
		}
		if (o->kind != BROADCAST || o->root == c->rank) ts[k++] = transfer_of(o, 1, q, out, bytes);
		if (o->kind != BROADCAST || o->root == q) ts[k++] = transfer_of(o, 0, q, in[q], bytes);
	}
	exchange(c, ts, k);
	if (o->kind == ALLREDUCE || o->kind == REDUCESCATTER) {
		for (int q = 0; q < n && !c->abort; q++) {
			if (o->op == AVG) premultiply(o->dtype, in[q], o->count, n);
			if (q) combine(o->dtype, o->op, in[0], in[q], o->count);
		}
		if (!c->abort) memcpy(o->recv, in[0], bytes);
		for (int q = 0; q < n; q++) free(in[q]);
	}
	free(in);
	free(ts);
}

// points does a group of sends and receives at once.
static void points(op *o) {
	comm *c = o->c;
	int n = 0, k = 0;
	for (op *p = o; p; p = p->next) n++;
	transfer *ts = calloc(n, sizeof *ts);
	for (op *p = o; p; p = p->next) {
		if (p->root == c->rank) die("a rank that sends to itself");
		ts[k++] = transfer_of(p, p->kind == SEND, p->root, p->kind == SEND ? p->send : p->recv, p->count * width(p->dtype));
	}
	exchange(c, ts, n);
	free(ts);
}

static void drop(op *o) {
	for (op *next; o; o = next) next = o->next, free(o);
}

// release is when an operation will never run again.
static void release_op(void *data) {
	comm *c = ((op *)data)->c;
	drop(data);
	c->held--; // nothing of c after this
}

// run is an operation's turn in its stream.
static void run(void *data) {
	op *o = data;
	comm *c = o->c;
	for (int turns = 0; !o->captured && c->turn != o->ticket && !c->abort;) nap(&turns);
	pthread_mutex_lock(&c->running);
	int n = c->ops++;
	if (struck("EBDOUBLE_NCCL_FAIL", c->rank, n)) {
		fail(c, 0, "connection to a peer was reset");
		c->state = REMOTE;
		hang(c);
	}
	if (struck("EBDOUBLE_NCCL_HANG", c->rank, n)) hang(c);
	if (!c->abort) o->kind < SEND ? collective(o) : points(o);
	pthread_mutex_unlock(&c->running);
	if (!o->captured) c->turn++;
}

static int queue(op *o) {
	comm *c = o->c;
	o->captured = eb_machine()->capturing(o->stream);
	if (!o->captured) o->ticket = c->tickets++;
	c->held++;
	static const char *const labels[] = {"", "ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv"};
	int r = eb_machine()->enqueue(o->stream, labels[o->kind], run, release_op, o);
	if (!r) return OK;
	c->held--;
	return fail(c, CUDA, "the stream returned %d", r);
}

// change leaves an error that an operation has come to meanwhile.
static void change(comm *c, int from, int to) { atomic_compare_exchange_strong(&c->state, &from, to); }

// launch queues what a call asks. Where the communicator does not block, that is
// in progress when the call returns; the first time, connections are made.
static int launch(comm *c, op *o) {
	if (c->blocking) return queue(o);
	c->late = o;
	clock_gettime(CLOCK_MONOTONIC, &c->ready);
	c->ready.tv_nsec += c->connected ? 20000 : 2000000;
	c->connected = 1;
	int ms = stuck(c->rank, c->launches++);
	if (knob("EBDOUBLE_NCCL_VERSION", 22809) < 22300) usleep(1000 * ms); // abort, a second call, may not end it
	else c->ready.tv_sec += ms / 1000, c->ready.tv_nsec += ms % 1000 * 1000000L;
	change(c, OK, PROGRESS);
	return PROGRESS;
}

// ---- groups

static __thread int depth;
static __thread op *first, *last;
static __thread result refused; // of a call of the group: then nothing of it is launched

// broken keeps an error of a call, where the communicator does not block.
static int broken(comm *c, int r) {
	if (c && !c->blocking) c->state = r;
	return r;
}

// close_group ends one that failed.
static int close_group(int r) {
	for (op *o = first; o; o = o->next) broken(o->c, r);
	drop(first);
	first = last = NULL, depth = 0, refused = OK;
	return r;
}

result ncclGroupStart(void) {
	FAULT();
	depth++;
	return OK;
}

result ncclGroupEnd(void) {
	int fault = eb_machine()->fault(__func__);
	if (fault) return close_group(fault);
	if (!depth) return USAGE;
	if (--depth) return OK;
	if (refused) return close_group(refused);
	if (!first) return OK;
	op *o = first;
	comm *c = o->c;
	first = last = NULL;
	enter(c);
	for (op *p = o; p; p = p->next)
		if (p->kind < SEND || p->c != c || p->stream != o->stream) die("a group of anything but sends and receives of one communicator on one stream");
	return leave(c, launch(c, o));
}

static int start(comm *c, const char *name, op proto) {
	int r = eb_machine()->fault(name);
	if (!c) return r ? r : ARGUMENT;
	if (!depth) enter(c);
	op *o = malloc(sizeof *o);
	*o = proto;
	o->c = c;
	if (r) fail(c, r, "%s was made to fail", name);
	else if (c->state == PROGRESS) r = fail(c, ARGUMENT, "a call before the one before it has ended");
	else if (c->state != OK) r = c->state;
	else if (proto.op == AVG && proto.dtype < F16) r = fail(c, ARGUMENT, "average of integers");
	else if (depth) {
		last ? (last->next = o) : (first = o);
		last = o;
		return OK;
	} else r = launch(c, o);
	if (r && r != PROGRESS) free(o), broken(c, r);
	if (!depth) return leave(c, r);
	return refused = r;
}

result ncclAllReduce(const void *s, void *r, size_t n, int t, int o, comm *c, void *stream) {
	return start(c, __func__, (op){.kind = ALLREDUCE, .dtype = t, .op = o, .send = s, .recv = r, .count = n, .stream = stream});
}
result ncclReduceScatter(const void *s, void *r, size_t n, int t, int o, comm *c, void *stream) {
	return start(c, __func__, (op){.kind = REDUCESCATTER, .dtype = t, .op = o, .send = s, .recv = r, .count = n, .stream = stream});
}
result ncclAllGather(const void *s, void *r, size_t n, int t, comm *c, void *stream) {
	return start(c, __func__, (op){.kind = ALLGATHER, .dtype = t, .send = s, .recv = r, .count = n, .stream = stream});
}
result ncclBroadcast(const void *s, void *r, size_t n, int t, int root, comm *c, void *stream) {
	return start(c, __func__, (op){.kind = BROADCAST, .dtype = t, .root = root, .send = s, .recv = r, .count = n, .stream = stream});
}
result ncclSend(const void *s, size_t n, int t, int peer, comm *c, void *stream) {
	return start(c, __func__, (op){.kind = SEND, .dtype = t, .root = peer, .send = s, .count = n, .stream = stream});
}
result ncclRecv(void *r, size_t n, int t, int peer, comm *c, void *stream) {
	return start(c, __func__, (op){.kind = RECV, .dtype = t, .root = peer, .recv = r, .count = n, .stream = stream});
}

// ---- life

result ncclGetVersion(int *v) {
	FAULT();
	*v = knob("EBDOUBLE_NCCL_VERSION", 22809);
	return OK;
}

const char *ncclGetErrorString(result r) {
	static const char *const names[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error",
			"invalid argument", "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
	return r >= 0 && r < 8 ? names[r] : "unknown result code";
}

const char *ncclGetLastError(comm *c) { return c ? c->last : ""; }

result ncclGetUniqueId(unique_id *id) {
	FAULT();
	memset(id, 0, sizeof *id);
	if (getrandom(id->b, 12, 0) != 12) return SYSTEM;
	return OK;
}

// meet is the thread of an init.
static void *meet(void *data) {
	comm *c = data;
	usleep(1000 * knob("EBDOUBLE_NCCL_INIT_MS", 2));
	c->sh->nranks = c->nranks;
	int fault = eb_machine()->fault("ncclInit");
	if (fault) {
		fail(c, 0, "init was made to fail");
		c->state = fault;
		return NULL;
	}
	c->sh->joined++;
	for (int turns = 0; c->sh->joined < c->nranks && !c->abort;) nap(&turns);
	unlink(c->path); // all are in, or it is over
	if (!c->abort) c->state = OK;
	return NULL;
}

static void record_nvls(void) {
	const char *path = getenv("EBDOUBLE_NCCL_NVLS"), *v = getenv("NCCL_NVLS_ENABLE");
	FILE *f = path ? fopen(path, "w") : NULL;
	if (f) fprintf(f, "%s", v ? v : "unset"), fclose(f);
}

result ncclCommInitRankConfig(comm **out, int nranks, unique_id id, int rank, config *g) {
	FAULT();
	*out = NULL;
	if (eb_machine()->device() < 0) return CUDA; // no current context
	if (g->size != 48 || g->magic != 0xcafebeef || g->version != 21800) die("ncclConfig_t is not of size 48 and version 21800");
	if (g->cga != INT32_MIN || g->min_ctas != INT32_MIN || g->max_ctas != INT32_MIN || g->net || g->split != INT32_MIN || g->traffic != INT32_MIN)
		die("a field of ncclConfig_t that was not asked for is set");
	record_nvls();
	comm *c = calloc(1, sizeof *c);
	c->rank = rank, c->nranks = nranks, c->blocking = g->blocking != 0, c->state = PROGRESS;
	pthread_mutex_init(&c->running, NULL);
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(c->path, sizeof c->path - 40, "%s/ebdouble-nccl-", tmp && *tmp ? tmp : "/tmp");
	for (int i = 0; i < 12; i++) n += sprintf(c->path + n, "%02x", (unsigned char)id.b[i]);
	c->bytes = sizeof(shared) + (size_t)nranks * nranks * sizeof(channel);
	int fd = open(c->path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, c->bytes) || (c->sh = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
		fprintf(stderr, "nccl double: %s: %s\n", c->path, strerror(errno));
		if (fd >= 0) close(fd);
		free(c);
		return SYSTEM;
	}
	close(fd);
	if (pthread_create(&c->init, NULL, meet, c)) die("no thread");
	c->initialising = 1;
	eb_machine()->count("NCCL communicator", 1);
	*out = c;
	if (!c->blocking) return PROGRESS;
	pthread_join(c->init, NULL);
	c->initialising = 0;
	return c->state;
}

static int past(struct timespec t) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - t.tv_sec) * 1000000000LL + now.tv_nsec - t.tv_nsec >= 0;
}

result ncclCommGetAsyncError(comm *c, result *r) {
	FAULT();
	enter(c);
	if (c->late && past(c->ready)) {
		op *o = c->late;
		c->late = NULL;
		change(c, PROGRESS, OK); // before it runs, and may come to an error
		int failed = queue(o);
		if (failed) c->state = failed;
	}
	if (c->finalising && c->state == PROGRESS && !c->held) c->state = OK; // of this rank alone: who waits for the others is destroy
	*r = c->state;
	return leave(c, OK);
}

result ncclCommFinalize(comm *c) {
	FAULT();
	enter(c);
	if (c->finalising) return leave(c, fail(c, ARGUMENT, "finalized twice"));
	if (c->state != OK) return leave(c, c->state == PROGRESS ? fail(c, ARGUMENT, "finalized before the call before it has ended") : c->state);
	c->finalising = 1;
	c->state = PROGRESS;
	c->sh->left++;
	return leave(c, PROGRESS);
}

static void release(comm *c) {
	if (c->initialising) pthread_join(c->init, NULL);
	if (c->late) drop(c->late);
	for (int turns = 0; c->held;) nap(&turns);
	while (c->registrations) deregister(c, c->registrations);
	unlink(c->path); // if its thread did not come so far
	munmap(c->sh, c->bytes);
	pthread_mutex_destroy(&c->running);
	free(c);
	eb_machine()->count("NCCL communicator", -1);
}

result ncclCommDestroy(comm *c) {
	END();
	enter(c);
	if (c->state != OK) die("a communicator is destroyed that has not ended well");
	if (!c->finalising) c->sh->left++;
	for (int turns = 0; c->sh->left < c->nranks;) nap(&turns); // a collective of the node's ranks
	release(c);
	return ended;
}

result ncclCommAbort(comm *c) {
	END();
	enter(c);
	c->abort = 1;
	if (!c->finalising) c->sh->left++;
	release(c);
	return ended;
}
