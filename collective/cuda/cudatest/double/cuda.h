// Inside of the double of libcuda: the machine with its devices, memory,
// streams, events and graphs. One lock guards all of it; what runs on a stream
// runs without it.
#ifndef EBTRAIN_DOUBLE_CUDA_H
#define EBTRAIN_DOUBLE_CUDA_H

#define _GNU_SOURCE
#include "abi/driver.h"
#include "double.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

// Codes that this double returns.
enum {
	OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201, NO_BINARY = 209, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
	NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_MERGE = 902, CAPTURE_UNMATCHED = 903,
	CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905, CAPTURED_EVENT = 907, CAPTURE_WRONG_THREAD = 908,
};

enum { MOST_DEVICES = 16 };

extern pthread_mutex_t lock;
extern pthread_cond_t progress; // something that others may wait for has ended

// die ends the process: a test did what the real library would not survive, or
// forgive.
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// knobs.c: what the machine is like.
typedef struct settings {
	int devices, capability, sms, driver;
	int parts;     // devices that are parts of one GPU; 0: each is a whole one
	size_t memory; // bytes of a device
	unsigned seed;
	int delay_us; // the longest random delay before an operation
	int order;    // of blocks and threads: 0 forwards, 1 backwards, 2 at random
	int queue;    // operations that a stream holds before calls wait for it; 0: any number
	char name[64];
} settings;
extern settings knobs;
int fault(const char *function);
void count(const char *kind, int change);
unsigned draw(void); // a random number of the seed's

// Handles are pointers to objects, which begin with their kind. They stay as
// long as the process, so that one that was destroyed is known.
typedef struct object {
	const char *kind; // NULL: destroyed
} object;
bool live(const void *handle, const char *kind);
extern const char *const STREAM, *const EVENT, *const MODULE, *const FUNCTION, *const GRAPH, *const EXEC, *const CONTEXT;

// device.c
typedef struct CUctx_st {
	object head;
	int device, retained, sticky;
	size_t used; // bytes of memory
	struct CUstream_st *streams;
	int captures; // under way
} context;
extern context contexts[MOST_DEVICES];
extern __thread context *current;

// CALL begins every function that needs the driver to be initialised, CONTEXT_CALL
// those that need a context.
#define CALL() \
	do { \
		int failed = fault(__func__); \
		if (failed) return failed; \
		if (!initialised()) return NOT_INITIALIZED; \
	} while (0)
#define CONTEXT_CALL() \
	do { \
		CALL(); \
		int bad = usable(); \
		if (bad) return bad; \
	} while (0)
// END_CALL begins those that destroy an object. They do it also where they fail,
// by order or because the device is broken, and return END.
#define END_CALL() \
	int failed = fault(__func__); \
	if (!initialised()) return NOT_INITIALIZED; \
	if (!current || !live(current, CONTEXT)) return INVALID_CONTEXT
#define END (failed ? failed : usable())
bool initialised(void);
int usable(void); // INVALID_CONTEXT, what broke the device, or 0

// A task is what a stream runs. It is counted: a graph and what was made of it
// share the tasks.
typedef struct task {
	const char *label;
	void (*run)(void *arg);
	void (*release)(void *arg);
	void *arg;
	int references;
} task;
task *new_task(const char *label, void (*run)(void *), void (*release)(void *), void *arg);
void keep_task(task *t);
void drop_task(task *t); // without the lock

// A mark is one recording of an event.
typedef struct mark {
	bool done;
	struct timespec at;
	int references;
} mark;

// An operation in a stream: a task, a recording, a wait, or a graph.
typedef struct operation {
	task *task;
	mark *record, *wait;
	struct CUgraphExec_st *graph;
	struct program *program; // of the graph
	struct operation *next;
} operation;

typedef struct CUstream_st {
	object head;
	context *context;
	pthread_cond_t work;
	operation *first, **last;
	int length; // of the queue
	bool busy;
	struct capture *capture;
	int *frontier, frontier_size; // of the capture: nodes that the next one follows
	struct CUstream_st *next;     // of the context
} stream;

typedef struct CUevent_st {
	object head;
	context *context;
	bool timed;
	mark *mark; // the last recording, or NULL
	struct capture *capture;
	int *frontier, frontier_size;
} event;

// stream.c; with the lock unless said otherwise.
int put(stream *s, task *t); // without it: into the stream, or into its capture
void await_room(stream *s);  // without it: until the stream's queue is not full
void run_task(context *c, task *t); // without it, on a stream's thread
int check_stream(const void *s); // without it: INVALID_HANDLE, or 0
void push(stream *s, operation o);
mark *new_mark(void);
void drop_mark(mark *m);
void wait_idle(context *c); // until no stream has anything to do

// graph.c; with the lock.
typedef struct CUgraphNode_st {
	int kind;
	task *task;   // or
	event *event; // recorded each time, or
	struct CUgraph_st *body; // run where the condition holds; of an executable, as it was
	int *after, after_size;
} node;
typedef struct program { // what was captured: of a graph and all that is made of it
	node *nodes;
	int size, room, references;
} program;
typedef struct capture {
	object head;
	stream *origin;
	struct CUgraph_st *into; // a body that is filled, or NULL: a graph of its own
	pthread_t thread;
	bool spoiled;
	program *program; // NULL once the capture has ended
	int references;   // of streams and events
} capture;
// A condition belongs to a graph, and is one node's.
typedef struct condition {
	unsigned value, flags;
	bool used;
} condition;
typedef struct CUgraph_st {
	object head;
	program *program;
	condition *conditions;
	int conditions_size;
	struct CUgraphExec_st *executable; // of a graph with a body there is one at a time
	bool inner;                // a body, which goes with its node
	struct CUgraph_st *self[1]; // what phGraph_out points to
	condition when;            // of a body
} graph;
typedef struct CUgraphExec_st {
	object head;
	program *program;
	bool running;
} executable;
program *new_program(void);
program *keep_program(program *p);
void drop_program(program *p); // without the lock
node *append_node(program *p);
int begin_capture(stream *s, program *p, graph *into); // without the lock
void drop_body(graph *body);
void forget_bodies(program *p);
// check_bodies says whether a graph can be made executable; why not, and where.
int check_bodies(const graph *g, CUDA_GRAPH_INSTANTIATE_PARAMS *params);
bool has_body(const program *p);
bool holds(const graph *body); // its condition, at a launch
int add_node(stream *s, task *t, event *e);
int spoil(capture *c, int code); // returns the code
int forbidden(void); // without the lock: a call that this thread's captures do not allow
void drop_capture(capture *c);
void run_graph(context *c, executable *x, program *p); // without the lock, on a stream's thread
int captured_wait(stream *s, event *e);
void captured_record(stream *s, event *e);

// memory.c
bool inside(const void *p, size_t n); // without the lock
void check_guards(void);

#endif
