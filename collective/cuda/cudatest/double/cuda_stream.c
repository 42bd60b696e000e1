// Streams, which are threads with a queue, and events.
#include "cuda.h"

#include <unistd.h>

task *new_task(const char *label, void (*run)(void *), void (*release)(void *), void *arg) {
	task *t = malloc(sizeof *t);
	*t = (task){label, run, release, arg, 1};
	return t;
}

void keep_task(task *t) { __atomic_add_fetch(&t->references, 1, __ATOMIC_ACQ_REL); }

void drop_task(task *t) {
	if (__atomic_sub_fetch(&t->references, 1, __ATOMIC_ACQ_REL)) return;
	if (t->release) t->release(t->arg);
	free(t);
}

mark *new_mark(void) {
	mark *m = calloc(1, sizeof *m);
	m->references = 1;
	return m;
}

void drop_mark(mark *m) {
	if (m && !--m->references) free(m);
}

static void pause_at_random(void) {
	if (knobs.delay_us > 0 && draw() % 4 == 0) usleep(draw() % (unsigned)knobs.delay_us);
}

// run_task runs a task, without the lock. On a broken device nothing runs.
void run_task(context *c, task *t) {
	char name[96];
	snprintf(name, sizeof name, "run:%s", t->label);
	if (__atomic_load_n(&c->sticky, __ATOMIC_ACQUIRE)) return;
	pause_at_random();
	int code = fault(name);
	if (code) __atomic_store_n(&c->sticky, code, __ATOMIC_RELEASE);
	else t->run(t->arg);
}

static void perform(stream *s, operation *o) {
	if (o->task) {
		run_task(s->context, o->task);
		drop_task(o->task);
	}
	if (o->graph) run_graph(s->context, o->graph, o->program);
}

static void wait_for(mark *m) {
	while (!m->done) pthread_cond_wait(&progress, &lock);
}

// reach marks an event's recording as reached.
static void reach(mark *m) {
	clock_gettime(CLOCK_MONOTONIC, &m->at);
	m->done = true;
}

static void *serve(void *arg) {
	stream *s = arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!s->first && s->head.kind) pthread_cond_wait(&s->work, &lock);
		operation *o = s->first;
		if (!o) break; // destroyed, and nothing left
		if (!(s->first = o->next)) s->last = &s->first;
		s->length--;
		s->busy = true;
		if (o->wait) wait_for(o->wait);
		pthread_mutex_unlock(&lock);
		perform(s, o);
		pthread_mutex_lock(&lock);
		if (o->record) reach(o->record);
		drop_mark(o->wait);
		drop_mark(o->record);
		free(o);
		s->busy = false;
		pthread_cond_broadcast(&progress);
	}
	for (stream **at = &s->context->streams; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	pthread_cond_broadcast(&progress);
	pthread_mutex_unlock(&lock);
	return NULL;
}

void push(stream *s, operation o) {
	operation *copy = malloc(sizeof *copy);
	*copy = o;
	*s->last = copy;
	s->last = &copy->next;
	s->length++;
	pthread_cond_signal(&s->work);
}

static bool idle(const stream *s) { return !s->first && !s->busy; }

void wait_idle(context *c) {
	for (stream *s = c->streams; s;) {
		if (idle(s)) {
			s = s->next;
			continue;
		}
		pthread_cond_wait(&progress, &lock);
		s = c->streams; // the list may be another one
	}
}

int check_stream(const void *s) {
	pthread_mutex_lock(&lock);
	int bad = live(s, STREAM) && ((const stream *)s)->context == current ? 0 : INVALID_HANDLE;
	pthread_mutex_unlock(&lock);
	return bad;
}

void await_room(stream *s) {
	pthread_mutex_lock(&lock);
	while (knobs.queue && !s->capture && s->length >= knobs.queue) pthread_cond_wait(&progress, &lock);
	pthread_mutex_unlock(&lock);
}

int put(stream *s, task *t) {
	pthread_mutex_lock(&lock);
	int bad = 0;
	if (s->capture) bad = add_node(s, t, NULL);
	else push(s, (operation){.task = t});
	pthread_mutex_unlock(&lock);
	if (bad) {
		t->release = NULL; // its argument is the caller's again
		drop_task(t);
	}
	return bad;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
	CONTEXT_CALL();
	if (flags != EB_CU_STREAM_NON_BLOCKING || priority > 0 || priority < -5) return INVALID_VALUE;
	stream *s = calloc(1, sizeof *s);
	s->head.kind = STREAM;
	s->context = current;
	s->last = &s->first;
	pthread_cond_init(&s->work, NULL);
	pthread_mutex_lock(&lock);
	s->next = current->streams;
	current->streams = s;
	pthread_mutex_unlock(&lock);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_t thread;
	if (pthread_create(&thread, &attributes, serve, s)) die("no thread for a stream");
	count(STREAM, 1);
	*out = s;
	return OK;
}

#define STREAM_CALL(s) \
	CONTEXT_CALL(); \
	do { \
		int no = check_stream(s); \
		if (no) return no; \
	} while (0)

CUresult cuStreamDestroy_v2(CUstream s) {
	END_CALL();
	int bad = check_stream(s);
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	if (s->capture) spoil(s->capture, 0);
	s->head.kind = NULL;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&lock);
	count(STREAM, -1);
	return END;
}

CUresult cuStreamSynchronize(CUstream s) {
	STREAM_CALL(s);
	int bad = forbidden();
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	if (s->capture) bad = spoil(s->capture, CAPTURE_UNSUPPORTED);
	while (!bad && !idle(s)) pthread_cond_wait(&progress, &lock);
	pthread_mutex_unlock(&lock);
	return bad ? bad : usable();
}

CUresult cuStreamQuery(CUstream s) {
	STREAM_CALL(s);
	int bad = forbidden();
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	if (s->capture) bad = spoil(s->capture, CAPTURE_UNSUPPORTED);
	else bad = idle(s) ? OK : NOT_READY;
	pthread_mutex_unlock(&lock);
	return bad == OK ? usable() : bad;
}

// A host function's argument is the caller's, so nothing is released.
typedef struct call {
	CUhostFn f;
	void *data;
} call;

static void run_call(void *arg) {
	const call *c = arg;
	c->f(c->data);
}

CUresult cuLaunchHostFunc(CUstream s, CUhostFn f, void *data) {
	STREAM_CALL(s);
	call *c = malloc(sizeof *c);
	*c = (call){f, data};
	int bad = put(s, new_task(__func__, run_call, free, c));
	if (bad) free(c);
	return bad;
}

// Events.

CUresult cuEventCreate(CUevent *out, unsigned int flags) {
	CONTEXT_CALL();
	if (flags & ~3u) return INVALID_VALUE;
	event *e = calloc(1, sizeof *e);
	e->head.kind = EVENT;
	e->context = current;
	e->timed = !(flags & EB_CU_EVENT_DISABLE_TIMING);
	count(EVENT, 1);
	*out = e;
	return OK;
}

static int check_event(const void *e) {
	pthread_mutex_lock(&lock);
	int bad = live(e, EVENT) && ((const event *)e)->context == current ? 0 : INVALID_HANDLE;
	pthread_mutex_unlock(&lock);
	return bad;
}

#define EVENT_CALL(e) \
	CONTEXT_CALL(); \
	do { \
		int no = check_event(e); \
		if (no) return no; \
	} while (0)

CUresult cuEventDestroy_v2(CUevent e) {
	END_CALL();
	int bad = check_event(e);
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	e->head.kind = NULL;
	drop_mark(e->mark);
	e->mark = NULL;
	if (e->capture) drop_capture(e->capture);
	e->capture = NULL;
	pthread_mutex_unlock(&lock);
	count(EVENT, -1);
	return END;
}

// record queues a recording; with the lock.
static void record(stream *s, event *e) {
	drop_mark(e->mark);
	e->mark = new_mark();
	e->mark->references++;
	if (e->capture) drop_capture(e->capture);
	e->capture = NULL;
	push(s, (operation){.record = e->mark});
}

CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned int flags) {
	EVENT_CALL(e);
	int bad = check_stream(s);
	if (bad || flags & ~1u) return bad ? bad : INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!s->capture) {
		if (flags) bad = INVALID_VALUE; // external means something in a capture alone
		else record(s, e);
	} else if (s->capture->spoiled) {
		bad = CAPTURE_INVALIDATED;
	} else if (flags) {
		bad = add_node(s, NULL, e);
	} else {
		captured_record(s, e);
	}
	pthread_mutex_unlock(&lock);
	return bad;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags) {
	EVENT_CALL(e);
	int bad = check_stream(s);
	if (bad || flags) return bad ? bad : NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	if (s->capture || e->capture) {
		bad = captured_wait(s, e);
	} else if (e->mark) {
		e->mark->references++;
		push(s, (operation){.wait = e->mark});
	}
	pthread_mutex_unlock(&lock);
	return bad;
}

CUresult cuEventQuery(CUevent e) {
	EVENT_CALL(e);
	int bad = forbidden();
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	if (e->capture) bad = CAPTURED_EVENT;
	else bad = !e->mark || e->mark->done ? OK : NOT_READY;
	pthread_mutex_unlock(&lock);
	return bad == OK ? usable() : bad;
}

CUresult cuEventSynchronize(CUevent e) {
	EVENT_CALL(e);
	int bad = forbidden();
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	if (e->capture) bad = CAPTURED_EVENT;
	else if (e->mark) {
		mark *m = e->mark;
		m->references++;
		wait_for(m);
		drop_mark(m);
	}
	pthread_mutex_unlock(&lock);
	return bad ? bad : usable();
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
	EVENT_CALL(from);
	int bad = check_event(to);
	if (bad) return bad;
	pthread_mutex_lock(&lock);
	if (!from->timed || !to->timed || !from->mark || !to->mark) bad = INVALID_HANDLE;
	else if (!from->mark->done || !to->mark->done) bad = NOT_READY;
	else *ms = (float)((double)(to->mark->at.tv_sec - from->mark->at.tv_sec) * 1e3 + (double)(to->mark->at.tv_nsec - from->mark->at.tv_nsec) / 1e6);
	pthread_mutex_unlock(&lock);
	return bad;
}
