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
//	EBDOUBLE_NCCL_MEET      1: a captured operation is in progress until all ranks capture it,
//	                      as where NVLS is told of the memory of a graph
//	EBDOUBLE_NCCL_REPORT    1: ranks that differ are an asynchronous error
//	EBDOUBLE_NCCL_NVLS      a file: where NCCL_NVLS_ENABLE as init saw it is written
//
// The calls that can be made to fail are those of the API and ncclInit, the
// thread of an init.
#include "nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/random.h>

void die(const char *what) {
	fprintf(stderr, "nccl double: %s\n", what);
	abort();
}

int fail(comm *c, int r, const char *format, ...) {
	va_list v;
	va_start(v, format);
	vsnprintf(c->last, sizeof c->last, format, v);
	va_end(v);
	return r;
}

int knob(const char *name, int otherwise) {
	const char *s = getenv(name);
	return s ? atoi(s) : otherwise;
}

void nap(int *turns) {
	if (++*turns < 200) sched_yield();
	else usleep(*turns < 2000 ? 20 : 500);
}

void enter(comm *c) {
	if (atomic_exchange(&c->busy, 1)) die("two calls at once on a communicator");
}
int leave(comm *c, int r) {
	atomic_store(&c->busy, 0);
	return r;
}

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
	if (c->late && past(c->ready) && c->sh->met >= c->nranks * c->meets) {
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
