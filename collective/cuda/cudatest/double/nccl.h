// Inside of the double of libnccl: what its files share.
#ifndef EBTRAIN_DOUBLE_NCCL_H
#define EBTRAIN_DOUBLE_NCCL_H

#define _GNU_SOURCE
#include "double.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

#define CHUNK (64 << 10)

typedef struct { // from one rank to another: a ring of bytes
	_Atomic uint64_t put, got;
	char pad[48];
	char data[CHUNK];
} channel;

typedef struct {
	atomic_int nranks, joined, left; // left: finalized or aborted
	atomic_int met;                  // captured operations, of all ranks, where those meet
	char pad[4096 - 16];
	channel to[]; // of rank a to rank b at a*nranks+b
} shared;

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
	int meets;       // captured operations, where ranks meet in them
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

// FAULT begins every function of the API: it may be made to fail.
#define FAULT() do { int fault_ = eb_machine()->fault(__func__); if (fault_) return fault_; } while (0)

// END begins those that free something: they do, also where they are made to fail or the
// device is broken.
#define END() \
	int ended = eb_machine()->fault(__func__); \
	if (!ended && eb_machine()->broken()) ended = CUDA

// The linker is not to take another library's functions of these names for them.
#pragma GCC visibility push(hidden)

// nccl.c
void die(const char *what);
int fail(comm *c, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));
int knob(const char *name, int otherwise);
void nap(int *turns);
// enter and leave are around each call on a communicator.
void enter(comm *c);
int leave(comm *c, int r);

// nccl_memory.c
// placed is the offset of p in memory that is registered, or -1.
int64_t placed(const char *p);
void deregister(comm *c, struct registration *g);

// nccl_data.c
size_t width(int dtype);
// combine reduces n elements at src into those at dst.
void combine(int dtype, int op, void *dst, const void *src, size_t n);
// premultiply is what ncclAvg does first.
void premultiply(int dtype, void *p, size_t n, int by);

// nccl_transfer.c
// hang waits for an abort.
void hang(comm *c);
void collective(op *o);
// points does a group of sends and receives at once.
void points(op *o);

// nccl_queue.c
// change leaves an error that an operation has come to meanwhile.
void change(comm *c, int from, int to);
// queue puts an operation into its stream.
int queue(op *o);
void drop(op *o);

#pragma GCC visibility pop

#endif
