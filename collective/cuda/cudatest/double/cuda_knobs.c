// Knobs of the machine, faults to order, and counts of what lives.
#include "cuda.h"

#include <stdarg.h>
#include <time.h>

static const settings usual = {.devices = 1, .capability = 90, .sms = 4, .driver = 13000, .memory = 4ull << 30, .seed = 1, .name = "Double H100"};
settings knobs;

void die(const char *format, ...) {
	va_list args;
	va_start(args, format);
	fputs("double: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;

// A tally counts by name.
typedef struct tally {
	char name[64];
	long n;
} tally;
static tally objects[64], calls[1 << 14];
static unsigned randomness;

static tally *find(tally *list, int most, const char *name) {
	for (int i = 0; i < most; i++) {
		if (!list[i].name[0]) snprintf(list[i].name, sizeof list[i].name, "%s", name);
		if (!strcmp(list[i].name, name)) return &list[i];
	}
	die("too many names to count: %s", name);
}

// called is the tally of a function's calls: kernels are many, so it is found by hash.
static tally *called(const char *name) {
	unsigned most = sizeof calls / sizeof *calls, at = 5381;
	for (const char *c = name; *c; c++) at = at * 33 + (unsigned char)*c;
	for (unsigned i = 0; i < most; i++) {
		tally *t = &calls[(at + i) % most];
		if (!t->name[0]) snprintf(t->name, sizeof t->name, "%s", name);
		if (!strcmp(t->name, name)) return t;
	}
	die("too many names to count: %s", name);
}

void count(const char *kind, int change) {
	pthread_mutex_lock(&counts_lock);
	tally *t = find(objects, 64, kind);
	t->n += change;
	if (t->n < 0) die("more objects destroyed than made: %s", kind);
	pthread_mutex_unlock(&counts_lock);
}

unsigned draw(void) {
	pthread_mutex_lock(&counts_lock);
	randomness = randomness * 1664525u + 1013904223u;
	unsigned r = randomness >> 8;
	pthread_mutex_unlock(&counts_lock);
	return r;
}

// An order for a fault: the n-th call from now on of a function (or of any, *)
// returns a code, or sleeps.
typedef struct order {
	char function[64];
	long n; // calls until then; 0: every call
	int code, sleep_ms;
	bool spent;
} order;
static order orders[32];
static int order_count;
static long total;

static pthread_cond_t awake = PTHREAD_COND_INITIALIZER;
static unsigned wakes;

// nap sleeps, or until somebody wakes all that do. counts_lock is held.
static void nap(int ms) {
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ms / 1000 + (end.tv_nsec + ms % 1000 * 1000000L) / 1000000000L;
	end.tv_nsec = (end.tv_nsec + ms % 1000 * 1000000L) % 1000000000L;
	for (unsigned before = wakes; before == wakes && !pthread_cond_timedwait(&awake, &counts_lock, &end);) {}
}

// any says whether a function is one of *: not what runs on a stream, and not
// what makes a context current, which is called as often as a goroutine comes to
// another thread, so that calls could not be numbered.
static bool any(const char *function) { return strncmp(function, "run:", 4) && strcmp(function, "cuCtxSetCurrent"); }

static bool matches(const order *o, const char *function) {
	if (!strcmp(o->function, "*")) return any(function);
	if (!strcmp(o->function, "run:*")) return strncmp(function, "run:", 4) == 0;
	return !strcmp(o->function, function);
}

int fault(const char *function) {
	pthread_mutex_lock(&counts_lock);
	called(function)->n++;
	if (any(function)) total++;
	int code = 0, sleep_ms = 0;
	for (int i = 0; i < order_count; i++) {
		order *o = &orders[i];
		if (o->spent || !matches(o, function) || (o->n > 1 && o->n--)) continue;
		o->spent = o->n == 1;
		if (o->code) code = o->code;
		sleep_ms += o->sleep_ms;
	}
	if (sleep_ms) nap(sleep_ms);
	pthread_mutex_unlock(&counts_lock);
	return code;
}

// add_order reads FUNCTION=N=CODE, or FUNCTION=N=~MILLISECONDS.
static int add_order(const char *text) {
	order o = {0};
	char what[16];
	if (order_count == 32 || sscanf(text, "%63[^=]=%ld=%15s", o.function, &o.n, what) != 3) return INVALID_VALUE;
	if (what[0] == '~') o.sleep_ms = atoi(what + 1);
	else o.code = atoi(what);
	orders[order_count++] = o;
	return 0;
}

// eb_knob sets a knob by its name; in the environment it is EBDOUBLE_ and the
// name. Unknown names and values are INVALID_VALUE.
int eb_knob(const char *name, const char *value) {
	pthread_mutex_lock(&counts_lock);
	int bad = 0;
	long long n = atoll(value);
	if (!strcmp(name, "DEVICES") && n >= 0 && n <= MOST_DEVICES) knobs.devices = (int)n;
	else if (!strcmp(name, "PARTS")) knobs.parts = (int)n;
	else if (!strcmp(name, "CAPABILITY")) knobs.capability = (int)n;
	else if (!strcmp(name, "SMS")) knobs.sms = (int)n;
	else if (!strcmp(name, "DRIVER")) knobs.driver = (int)n;
	else if (!strcmp(name, "MEMORY")) knobs.memory = (size_t)n;
	else if (!strcmp(name, "NAME")) snprintf(knobs.name, sizeof knobs.name, "%s", value);
	else if (!strcmp(name, "SEED")) knobs.seed = randomness = (unsigned)n;
	else if (!strcmp(name, "DELAY")) knobs.delay_us = (int)n;
	else if (!strcmp(name, "ORDER") && n >= 0 && n <= 2) knobs.order = (int)n;
	else if (!strcmp(name, "QUEUE") && n >= 0) knobs.queue = (int)n;
	else if (!strcmp(name, "FAULT")) bad = add_order(value);
	else if (!strcmp(name, "WAKE")) wakes++, pthread_cond_broadcast(&awake);
	else bad = INVALID_VALUE;
	pthread_mutex_unlock(&counts_lock);
	return bad;
}

// eb_calls is how often a function was called; of *, all together.
long eb_calls(const char *function) {
	pthread_mutex_lock(&counts_lock);
	long n = strcmp(function, "*") ? called(function)->n : total;
	pthread_mutex_unlock(&counts_lock);
	return n;
}

// eb_live is how many objects of a kind live; report, if not NULL, gets a line of
// all kinds that do.
long eb_live(const char *kind, char *report, size_t len) {
	pthread_mutex_lock(&counts_lock);
	long n = 0;
	size_t used = 0;
	if (report && len) report[0] = 0;
	for (int i = 0; i < 64 && objects[i].name[0]; i++) {
		if (!strcmp(kind, "*") || !strcmp(kind, objects[i].name)) n += objects[i].n;
		if (report && objects[i].n && used < len) used += (size_t)snprintf(report + used, len - used, "%s%ld %s", used ? ", " : "", objects[i].n, objects[i].name);
	}
	pthread_mutex_unlock(&counts_lock);
	return n;
}

// eb_reset makes the machine what the environment says, without what was set
// since. Calls are counted from 0 again.
__attribute__((constructor)) void eb_reset(void) {
	pthread_mutex_lock(&counts_lock);
	knobs = usual;
	order_count = 0;
	total = 0;
	memset(calls, 0, sizeof calls);
	pthread_mutex_unlock(&counts_lock);
	static const char *const names[] = {"DEVICES", "PARTS", "CAPABILITY", "SMS", "DRIVER", "MEMORY", "NAME", "SEED", "DELAY", "ORDER", "QUEUE"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char variable[64];
		snprintf(variable, sizeof variable, "EBDOUBLE_%s", names[i]);
		const char *value = getenv(variable);
		if (value && eb_knob(names[i], value)) die("%s=%s is no such knob", variable, value);
	}
	const char *faults = getenv("EBDOUBLE_FAULT");
	char copy[1024];
	snprintf(copy, sizeof copy, "%s", faults ? faults : "");
	for (char *rest, *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (eb_knob("FAULT", one)) die("EBDOUBLE_FAULT=%s is no list of FUNCTION=N=CODE", faults);
	}
}
