// Operations in their streams, and the calls and groups that put them there.
#include "nccl.h"

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

void drop(op *o) {
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

int queue(op *o) {
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

void change(comm *c, int from, int to) { atomic_compare_exchange_strong(&c->state, &from, to); }

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
	if (knob("EBDOUBLE_NCCL_MEET", 0) && eb_machine()->capturing(o->stream)) c->meets++, c->sh->met++;
	change(c, OK, PROGRESS);
	return PROGRESS;
}

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
