// Captures and graphs. A capture knows for each of its streams which nodes the
// next one follows (the frontier); events carry frontiers from one to another.
// A graph runs its nodes one after the other, in an order that is drawn among
// those that its edges allow.
#include "cuda.h"

static int *copy_ints(const int *from, int n) {
	int *to = malloc(sizeof *to * (size_t)(n + 1));
	if (n) memcpy(to, from, sizeof *to * (size_t)n);
	return to;
}

// Programs.

program *new_program(void) {
	program *p = calloc(1, sizeof *p);
	p->references = 1;
	return p;
}

void drop_program(program *p) {
	if (__atomic_sub_fetch(&p->references, 1, __ATOMIC_ACQ_REL)) return;
	for (int i = 0; i < p->size; i++) {
		if (p->nodes[i].task) drop_task(p->nodes[i].task);
		if (p->nodes[i].body) drop_body(p->nodes[i].body);
		free(p->nodes[i].after);
	}
	free(p->nodes);
	free(p);
}

program *keep_program(program *p) {
	__atomic_add_fetch(&p->references, 1, __ATOMIC_ACQ_REL);
	return p;
}

node *append_node(program *p) {
	if (p->size == p->room) p->nodes = realloc(p->nodes, sizeof *p->nodes * (size_t)(p->room = 2 * p->room + 16));
	p->nodes[p->size] = (node){0};
	return &p->nodes[p->size++];
}

// kind_of tells by the function that put it there what a node is.
static int kind_of(const task *t) {
	if (!t) return EB_CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	if (!strncmp(t->label, "cuMemcpy", 8)) return EB_CU_GRAPH_NODE_TYPE_MEMCPY;
	if (!strncmp(t->label, "cuMemset", 8)) return EB_CU_GRAPH_NODE_TYPE_MEMSET;
	return strcmp(t->label, "cuLaunchHostFunc") ? EB_CU_GRAPH_NODE_TYPE_KERNEL : EB_CU_GRAPH_NODE_TYPE_HOST;
}

int add_node(stream *s, task *t, event *e) {
	capture *c = s->capture;
	if (c->spoiled) return CAPTURE_INVALIDATED;
	node *n = append_node(c->program);
	*n = (node){.kind = kind_of(t), .task = t, .event = e, .after = s->frontier, .after_size = s->frontier_size};
	int at = c->program->size - 1;
	s->frontier = copy_ints(&at, 1);
	s->frontier_size = 1;
	return OK;
}

// Captures.

int spoil(capture *c, int code) {
	c->spoiled = true;
	return code;
}

void drop_capture(capture *c) {
	if (!--c->references) free(c);
}

int forbidden(void) {
	int bad = 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST_DEVICES; i++)
		for (stream *s = contexts[i].streams; s; s = s->next)
			if (s->capture && pthread_equal(s->capture->thread, pthread_self())) bad = spoil(s->capture, CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&lock);
	return bad;
}

static void set_frontier(stream *s, const int *nodes, int n) {
	int *copy = copy_ints(nodes, n);
	free(s->frontier);
	s->frontier = copy;
	s->frontier_size = n;
}

static void join(stream *s, capture *c) {
	s->capture = c;
	c->references++;
	s->context->captures++;
	set_frontier(s, NULL, 0);
}

static void leave(stream *s) {
	capture *c = s->capture;
	s->capture = NULL;
	s->context->captures--;
	set_frontier(s, NULL, 0);
	drop_capture(c);
}

// begin_capture takes the program, also where it fails.
int begin_capture(stream *s, program *p, graph *into) {
	int bad = 0;
	pthread_mutex_lock(&lock);
	if (s->capture) {
		bad = spoil(s->capture, CAPTURE_UNSUPPORTED);
	} else {
		capture *c = calloc(1, sizeof *c);
		c->origin = s;
		c->thread = pthread_self();
		c->program = p;
		c->into = into;
		join(s, c);
	}
	pthread_mutex_unlock(&lock);
	if (bad) drop_program(p);
	return bad;
}

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
	CONTEXT_CALL();
	int bad = check_stream(s);
	if (bad) return bad;
	if (mode != EB_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) return NOT_SUPPORTED;
	return begin_capture(s, new_program(), NULL);
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
	CONTEXT_CALL();
	int bad = check_stream(s);
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	*status = !s->capture ? 0 : s->capture->spoiled ? 2 : 1;
	pthread_mutex_unlock(&lock);
	return OK;
}

void captured_record(stream *s, event *e) {
	drop_mark(e->mark);
	e->mark = NULL;
	capture *old = e->capture;
	e->capture = s->capture;
	s->capture->references++;
	if (old) drop_capture(old);
	free(e->frontier);
	e->frontier = copy_ints(s->frontier, s->frontier_size);
	e->frontier_size = s->frontier_size;
}

int captured_wait(stream *s, event *e) {
	if (s->capture && s->capture->spoiled) return CAPTURE_INVALIDATED;
	if (!e->capture) return e->mark ? spoil(s->capture, CAPTURE_ISOLATION) : OK; // never recorded: nothing to wait for
	if (!e->capture->program) return s->capture ? spoil(s->capture, CAPTURE_ISOLATION) : CAPTURED_EVENT;
	if (e->capture->spoiled) return CAPTURE_INVALIDATED;
	if (!s->capture) join(s, e->capture);
	if (s->capture != e->capture) {
		spoil(e->capture, 0);
		return spoil(s->capture, CAPTURE_MERGE);
	}
	int n = s->frontier_size, *all = copy_ints(s->frontier, n + e->frontier_size);
	for (int i = 0; i < e->frontier_size; i++) {
		bool there = false;
		for (int j = 0; j < s->frontier_size; j++) there |= s->frontier[j] == e->frontier[i];
		if (!there) all[n++] = e->frontier[i];
	}
	free(s->frontier);
	s->frontier = all;
	s->frontier_size = n;
	return OK;
}

// reached marks the nodes that come before a frontier, and its own.
static void reached(const program *p, const int *frontier, int n, bool *mark) {
	for (int i = 0; i < n; i++) mark[frontier[i]] = true;
	for (int i = p->size - 1; i >= 0; i--) // nodes follow earlier ones alone
		for (int j = 0; mark[i] && j < p->nodes[i].after_size; j++) mark[p->nodes[i].after[j]] = true;
}

// joined says whether all streams of a capture were joined to its origin.
static bool joined(const capture *c) {
	bool *mark = calloc((size_t)c->program->size + 1, sizeof *mark), all = true;
	reached(c->program, c->origin->frontier, c->origin->frontier_size, mark);
	for (int i = 0; i < MOST_DEVICES; i++)
		for (stream *s = contexts[i].streams; s; s = s->next)
			for (int j = 0; s->capture == c && j < s->frontier_size; j++) all &= mark[s->frontier[j]];
	free(mark);
	return all;
}

static graph *new_graph(program *p) {
	graph *g = calloc(1, sizeof *g);
	g->head.kind = GRAPH;
	g->program = p;
	count(GRAPH, 1);
	return g;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
	END_CALL();
	int bad = check_stream(s);
	if (bad) return bad;
	*out = NULL;
	pthread_mutex_lock(&lock);
	capture *c = s->capture;
	if (!c || c->origin != s || !pthread_equal(c->thread, pthread_self())) {
		bad = !c ? 401 : c->origin != s ? CAPTURE_UNMATCHED : CAPTURE_WRONG_THREAD;
		pthread_mutex_unlock(&lock);
		return bad;
	}
	if (END) bad = END;
	else if (c->spoiled) bad = CAPTURE_INVALIDATED;
	else if (!joined(c)) bad = CAPTURE_UNJOINED;
	program *p = c->program;
	graph *g = c->into;
	c->program = NULL;
	c->references++;
	for (int i = 0; i < MOST_DEVICES; i++)
		for (stream *t = contexts[i].streams; t; t = t->next)
			if (t->capture == c) leave(t);
	drop_capture(c);
	pthread_mutex_unlock(&lock);
	if (bad || g) drop_program(p); // a body has it, too
	if (!bad) *out = g ? g : new_graph(p);
	return bad;
}

// Graphs.

#define GRAPH_CALL(g, kind) \
	CONTEXT_CALL(); \
	if (!live(g, kind)) return INVALID_HANDLE

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
	GRAPH_CALL(g, GRAPH);
	size_t all = (size_t)g->program->size;
	for (size_t i = 0; nodes && i < *n; i++) nodes[i] = i < all ? &g->program->nodes[i] : NULL;
	*n = nodes && *n < all ? *n : all;
	return OK;
}

// Nodes stay where they are once their graph is complete.
CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *kind) {
	CONTEXT_CALL();
	if (!n) return INVALID_VALUE;
	*kind = n->kind;
	return OK;
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags) {
	CONTEXT_CALL();
	if (flags) return INVALID_VALUE;
	*out = new_graph(new_program());
	return OK;
}

CUresult cuGraphDestroy(CUgraph g) {
	END_CALL();
	if (!live(g, GRAPH)) return INVALID_HANDLE;
	if (g->inner) die("a body is destroyed, which goes with its node");
	g->head.kind = NULL;
	forget_bodies(g->program);
	drop_program(g->program);
	count(GRAPH, -1);
	return END;
}

static int instantiate(CUgraphExec *out, graph *g, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
	int bad = forbidden();
	if (bad || params->flags || params->hUploadStream) return bad ? bad : NOT_SUPPORTED;
	if ((bad = check_bodies(g, params))) return bad;
	executable *x = calloc(1, sizeof *x);
	x->head.kind = EXEC;
	x->program = keep_program(g->program);
	g->executable = x;
	count(EXEC, 1);
	*out = x;
	return OK;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags) {
	GRAPH_CALL(g, GRAPH);
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};
	return instantiate(out, g, &params);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
	GRAPH_CALL(g, GRAPH);
	params->result_out = EB_CUDA_GRAPH_INSTANTIATE_ERROR;
	int bad = instantiate(out, g, params);
	if (!bad) params->result_out = EB_CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return bad;
}

CUresult cuGraphExecDestroy(CUgraphExec x) {
	END_CALL();
	if (!live(x, EXEC)) return INVALID_HANDLE;
	x->head.kind = NULL;
	drop_program(x->program); // runs under way keep it
	count(EXEC, -1);
	return END;
}

static int outside_capture(stream *s) {
	int bad = check_stream(s);
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	if (s->capture) bad = spoil(s->capture, CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&lock);
	return bad;
}

CUresult cuGraphUpload(CUgraphExec x, CUstream s) {
	GRAPH_CALL(x, EXEC);
	return outside_capture(s);
}

CUresult cuGraphLaunch(CUgraphExec x, CUstream s) {
	GRAPH_CALL(x, EXEC);
	int bad = outside_capture(s);
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	push(s, (operation){.graph = x, .program = keep_program(x->program)});
	pthread_mutex_unlock(&lock);
	return OK;
}

// record_now is a node that records an event.
static void record_now(event *e) {
	pthread_mutex_lock(&lock);
	if (e->head.kind) {
		drop_mark(e->mark);
		e->mark = new_mark();
		e->mark->done = true;
		clock_gettime(CLOCK_MONOTONIC, &e->mark->at);
		pthread_cond_broadcast(&progress);
	}
	pthread_mutex_unlock(&lock);
}

// run_nodes takes one at random of the nodes all of whose predecessors have run,
// until all have.
static void run_nodes(context *c, const program *p) {
	int n = p->size, ready_size = 0, *ready = malloc(sizeof *ready * (size_t)(n + 1)), *left = malloc(sizeof *left * (size_t)(n + 1));
	for (int i = 0; i < n; i++)
		if (!(left[i] = p->nodes[i].after_size)) ready[ready_size++] = i;
	while (ready_size) {
		unsigned pick = draw() % (unsigned)ready_size;
		int at = ready[pick];
		ready[pick] = ready[--ready_size];
		const node *now = &p->nodes[at];
		if (now->task) run_task(c, now->task);
		else if (now->event) record_now(now->event);
		else if (holds(now->body)) run_nodes(c, now->body->program);
		for (int i = at + 1; i < n; i++)
			for (int j = 0; j < p->nodes[i].after_size; j++)
				if (p->nodes[i].after[j] == at && !--left[i]) ready[ready_size++] = i;
	}
	free(ready);
	free(left);
}

// run_graph runs a graph; runs of one executable do not overlap.
void run_graph(context *c, executable *x, program *p) {
	pthread_mutex_lock(&lock);
	while (x->running) pthread_cond_wait(&progress, &lock);
	x->running = true;
	pthread_mutex_unlock(&lock);
	run_nodes(c, p);
	pthread_mutex_lock(&lock);
	x->running = false;
	pthread_cond_broadcast(&progress);
	pthread_mutex_unlock(&lock);
	drop_program(p);
}
