// The double of cuDNN: descriptors whose attributes are checked by number, type and
// count when they are set, and for completeness and sense when they are finalized.
// EBDOUBLE_CUDNN_VERSION in the environment is its version.
#include "cudnn.h"

#include <stdarg.h>

static __thread char last[512];

int say(int status, const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(last, sizeof last, format, args);
	va_end(args);
	return status;
}

#define CALL() \
	do { \
		int failed = eb_machine()->fault(__func__); \
		if (failed) return say(failed, "%s fails as it was told to", __func__); \
	} while (0)

static const uint64_t DESC = 0x64657363646e6e31, HANDLE = 0x68616e646e6e3131;

desc *live_desc(const void *p) {
	desc *d = (desc *)p;
	return d && d->magic == DESC ? d : NULL;
}

handle *live_handle(const void *p) {
	handle *h = (handle *)p;
	return h && h->magic == HANDLE ? h : NULL;
}

// What may be set: by descriptor and attribute, the type and how many elements. read
// marks those that are asked for instead.
typedef struct rule {
	int kind, name, type;
	int64_t least, most;
	enum { MUST, MAY, READ } need;
} rule;

static const rule rules[] = {
	{TENSOR, 900, T_INT64, 1, 1, MUST}, {TENSOR, 901, T_DATA, 1, 1, MUST}, {TENSOR, 902, T_INT64, 4, 4, MUST}, {TENSOR, 903, T_INT64, 4, 4, MUST},
	{TENSOR, 906, T_INT64, 1, 1, MUST},
	{CONVOLUTION, 100, T_DATA, 1, 1, MUST}, {CONVOLUTION, 101, T_CONV_MODE, 1, 1, MUST}, {CONVOLUTION, 102, T_INT64, 2, 2, MUST},
	{CONVOLUTION, 103, T_INT64, 2, 2, MUST}, {CONVOLUTION, 104, T_INT64, 2, 2, MUST}, {CONVOLUTION, 105, T_INT64, 2, 2, MUST},
	{CONVOLUTION, 106, T_INT64, 1, 1, MUST},
	{FORWARD, 700, T_SCALE, 1, 1, MUST}, {FORWARD, 701, T_SCALE, 1, 1, MUST}, {FORWARD, 702, T_DESC, 1, 1, MUST}, {FORWARD, 703, T_DESC, 1, 1, MUST},
	{FORWARD, 704, T_DESC, 1, 1, MUST}, {FORWARD, 705, T_DESC, 1, 1, MUST},
	{BACKWARD_DATA, 706, T_SCALE, 1, 1, MUST}, {BACKWARD_DATA, 707, T_SCALE, 1, 1, MUST}, {BACKWARD_DATA, 708, T_DESC, 1, 1, MUST},
	{BACKWARD_DATA, 709, T_DESC, 1, 1, MUST}, {BACKWARD_DATA, 710, T_DESC, 1, 1, MUST}, {BACKWARD_DATA, 711, T_DESC, 1, 1, MUST},
	{BACKWARD_FILTER, 712, T_SCALE, 1, 1, MUST}, {BACKWARD_FILTER, 713, T_SCALE, 1, 1, MUST}, {BACKWARD_FILTER, 714, T_DESC, 1, 1, MUST},
	{BACKWARD_FILTER, 715, T_DESC, 1, 1, MUST}, {BACKWARD_FILTER, 716, T_DESC, 1, 1, MUST}, {BACKWARD_FILTER, 717, T_DESC, 1, 1, MUST},
	{GRAPH, 800, T_HANDLE, 1, 1, MUST}, {GRAPH, 801, T_DESC, 1, 1, MUST},
	{ENGINEHEUR, 200, T_HEUR_MODE, 1, 1, MUST}, {ENGINEHEUR, 201, T_DESC, 1, 1, MUST}, {ENGINEHEUR, 202, T_DESC, 0, 0, READ},
	{ENGINE, 1300, T_DESC, 1, 1, MUST}, {ENGINE, 1301, T_INT64, 1, 1, MUST}, {ENGINE, 1303, T_NUMERICAL, 0, 0, READ},
	{ENGINE, 1305, T_BEHAVIOR, 0, 0, READ},
	{KNOB_CHOICE, 600, T_KNOB, 1, 1, MUST}, {KNOB_CHOICE, 601, T_INT64, 1, 1, MUST},
	{ENGINECFG, 300, T_DESC, 1, 1, MUST}, {ENGINECFG, 302, T_DESC, 1, 64, MAY},
	{PLAN, 400, T_HANDLE, 1, 1, MAY}, {PLAN, 401, T_DESC, 1, 1, MUST}, {PLAN, 402, T_INT64, 0, 0, READ},
	{PACK, 1000, T_INT64, 1, 8, MUST}, {PACK, 1001, T_POINTER, 1, 8, MUST}, {PACK, 1003, T_POINTER, 1, 1, MUST},
};

static const rule *rule_of(int kind, int name) {
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].kind == kind && rules[i].name == name) return &rules[i];
	return NULL;
}

static size_t size_of(int type) {
	switch (type) {
	case T_DATA: case T_FLOAT: case T_CONV_MODE: case T_HEUR_MODE: case T_KNOB: case T_NUMERICAL: case T_BEHAVIOR: return 4;
	}
	return 8;
}

const attribute *attr_of(const desc *d, int name) {
	for (int i = 0; i < d->sets; i++)
		if (d->set[i].name == name) return &d->set[i];
	return NULL;
}

int64_t int_of(const desc *d, int name, int i) {
	const attribute *a = attr_of(d, name);
	return size_of(a->type) == 4 ? ((const int32_t *)a->elements)[i] : ((const int64_t *)a->elements)[i];
}

desc *desc_of(const desc *d, int name) { return *(desc **)attr_of(d, name)->elements; }

size_t cudnnGetVersion(void) {
	const char *v = getenv("EBDOUBLE_CUDNN_VERSION");
	return v && *v ? (size_t)atol(v) : 91900;
}

size_t cudnnGetCudartVersion(void) { return 13000; }

const char *cudnnGetErrorString(int status) {
	switch (status) {
	case 1001: return "CUDNN_STATUS_NOT_INITIALIZED";
	case 1002: return "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH";
	case 1008: return "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED";
	case 2000: return "CUDNN_STATUS_BAD_PARAM";
	case 3000: return "CUDNN_STATUS_NOT_SUPPORTED";
	case 3008: return "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING";
	case 4000: return "CUDNN_STATUS_INTERNAL_ERROR";
	case 5000: return "CUDNN_STATUS_EXECUTION_FAILED";
	}
	return "CUDNN_STATUS_OF_THE_DOUBLE";
}

void cudnnGetLastErrorString(char *message, size_t size) {
	if (size) snprintf(message, size, "%s", last);
}

int cudnnCreate(handle **out) {
	CALL();
	const int device = eb_machine()->device();
	if (device < 0) return say(NOT_INITIALIZED, "no context is current");
	handle *h = calloc(1, sizeof *h);
	h->magic = HANDLE;
	h->device = device;
	eb_machine()->count("cuDNN handle", 1);
	*out = h;
	return SUCCESS;
}

int cudnnDestroy(handle *p) {
	CALL();
	handle *h = live_handle(p);
	if (!h) return say(BAD_PARAM, "no handle");
	h->magic = 0;
	free(h);
	eb_machine()->count("cuDNN handle", -1);
	return SUCCESS;
}

int cudnnSetStream(handle *p, void *stream) {
	CALL();
	handle *h = live_handle(p);
	if (!h) return say(BAD_PARAM, "no handle");
	h->stream = stream;
	return SUCCESS;
}

int cudnnBackendCreateDescriptor(int kind, void **out) {
	CALL();
	bool known = false;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) known |= rules[i].kind == kind;
	if (!known) return say(BAD_PARAM, "no descriptor is of kind %d", kind);
	desc *d = calloc(1, sizeof *d);
	d->magic = DESC;
	d->kind = kind;
	d->engine = -1;
	eb_machine()->count("cuDNN descriptor", 1);
	*out = d;
	return SUCCESS;
}

int cudnnBackendDestroyDescriptor(void *p) {
	CALL();
	desc *d = live_desc(p);
	if (!d) return say(BAD_PARAM, "no descriptor");
	for (int i = 0; i < d->sets; i++) free(d->set[i].elements);
	d->magic = 0;
	free(d);
	eb_machine()->count("cuDNN descriptor", -1);
	return SUCCESS;
}

int cudnnBackendSetAttribute(void *p, int name, int type, int64_t count, const void *elements) {
	CALL();
	desc *d = live_desc(p);
	if (!d || !elements) return say(NULL_POINTER, "no descriptor, or no elements");
	if (d->final) return say(NOT_INITIALIZED, "the descriptor is final");
	const rule *r = rule_of(d->kind, name);
	if (!r || r->need == READ) return say(BAD_PARAM, "descriptor %d has no attribute %d to set", d->kind, name);
	if (type != r->type && !(r->type == T_SCALE && (type == T_FLOAT || type == T_DOUBLE)))
		return say(ATTRIBUTE_TYPE, "attribute %d has type %d, not %d", name, r->type, type);
	if (count < r->least || count > r->most) return say(OUT_OF_BOUND, "attribute %d has %ld elements", name, (long)count);
	for (int64_t i = 0; i < count; i++) {
		void *e = ((void *const *)elements)[type == T_DESC || type == T_HANDLE ? i : 0];
		if (type == T_DESC && !live_desc(e)) return say(BAD_PARAM, "attribute %d: no descriptor", name);
		if (type == T_DESC && !live_desc(e)->final) return say(NOT_FINALIZED, "attribute %d is not final", name);
		if (type == T_HANDLE && !live_handle(e)) return say(BAD_PARAM, "attribute %d: no handle", name);
	}
	attribute *a = (attribute *)attr_of(d, name);
	if (!a) a = &d->set[d->sets++];
	free(a->elements);
	*a = (attribute){name, type, count, malloc((size_t)count * size_of(type))};
	memcpy(a->elements, elements, (size_t)count * size_of(type));
	return SUCCESS;
}

static int check_tensor(const desc *t) {
	const int64_t type = int_of(t, 901, 0), align = int_of(t, 900, 0);
	if (type != DATA_FLOAT && type != DATA_DOUBLE && type != DATA_BFLOAT16) return say(NOT_SUPPORTED_TYPE, "tensors of type %ld", (long)type);
	if (align < 1 || align & (align - 1)) return say(BAD_PARAM, "alignment %ld", (long)align);
	for (int i = 0; i < 4; i++)
		if (int_of(t, 902, i) < 1 || int_of(t, 903, i) < 1) return say(BAD_PARAM, "an extent or stride below 1");
	return SUCCESS;
}

static int check_convolution(const desc *c) {
	if (int_of(c, 106, 0) != 2) return say(BAD_PARAM, "want 2 spatial dimensions");
	if (int_of(c, 101, 0) != 1) return say(NOT_SUPPORTED, "want a cross-correlation");
	for (int i = 0; i < 2; i++)
		if (int_of(c, 102, i) < 1 || int_of(c, 103, i) < 1 || int_of(c, 104, i) < 0 || int_of(c, 105, i) < 0)
			return say(BAD_PARAM, "a dilation or stride below 1, or a negative padding");
	return SUCCESS;
}

static int check_engine(desc *e) {
	e->graph = desc_of(e, 1300);
	e->engine = (int)int_of(e, 1301, 0);
	if (e->graph->kind != GRAPH || e->engine < 0 || e->engine >= ENGINES) return say(BAD_PARAM, "there is no engine %d", e->engine);
	return suits(e->graph, e->engine);
}

static int check_config(desc *c) {
	const desc *e = desc_of(c, 300);
	if (e->kind != ENGINE) return say(BAD_PARAM, "want an engine");
	c->graph = e->graph;
	c->engine = e->engine;
	const attribute *knobs = attr_of(c, 302);
	for (int64_t i = 0; knobs && i < knobs->count; i++) {
		const desc *k = ((desc **)knobs->elements)[i];
		if (k->kind != KNOB_CHOICE || int_of(k, 600, 0) != KNOB_TYPE || !engines[c->engine].has_knob) return say(BAD_PARAM, "engine %d has no such knob", c->engine);
		c->knob = int_of(k, 601, 0);
		if (c->knob < 0 || c->knob >= KNOB_VALUES) return say(OUT_OF_BOUND, "the knob has no value %ld", (long)c->knob);
	}
	return SUCCESS;
}

static int check_plan(desc *p) {
	const desc *c = desc_of(p, 401);
	if (c->kind != ENGINECFG) return say(BAD_PARAM, "want a configuration");
	p->graph = c->graph;
	p->engine = c->engine;
	p->knob = c->knob;
	return SUCCESS;
}

static int check(desc *d) {
	switch (d->kind) {
	case TENSOR: return check_tensor(d);
	case CONVOLUTION: return check_convolution(d);
	case FORWARD: case BACKWARD_DATA: case BACKWARD_FILTER: return check_operation(d);
	case GRAPH: return SUCCESS;
	case ENGINEHEUR:
		d->graph = desc_of(d, 201);
		return d->graph->kind != GRAPH ? say(BAD_PARAM, "want a graph") : offered(d->graph, (int)int_of(d, 200, 0), (int[ENGINES]){0}) < 0 ? BAD_PARAM : SUCCESS;
	case ENGINE: return check_engine(d);
	case ENGINECFG: return check_config(d);
	case PLAN: return check_plan(d);
	case PACK: return attr_of(d, 1000)->count == attr_of(d, 1001)->count ? SUCCESS : say(BAD_PARAM, "as many pointers as ids are wanted");
	}
	return SUCCESS;
}

int cudnnBackendFinalize(void *p) {
	CALL();
	desc *d = live_desc(p);
	if (!d || d->final) return say(BAD_PARAM, "no descriptor, or a final one");
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].kind == d->kind && rules[i].need == MUST && !attr_of(d, rules[i].name))
			return say(BAD_PARAM, "descriptor %d lacks attribute %d", d->kind, rules[i].name);
	const int status = check(d);
	d->final = status == SUCCESS;
	return status;
}

// fill_config makes a configuration that heuristics offer: the caller's descriptor
// becomes final.
static void fill_config(desc *c, desc *graph, int e) {
	c->graph = graph;
	c->engine = e;
	c->knob = engines[e].has_knob ? 1 : 0;
	c->final = true;
}

static int give(int64_t asked, int64_t *count, int32_t *out, const int *list, int n) {
	for (int i = 0; out && i < n && i < asked; i++) out[i] = list[i];
	if (count) *count = n;
	return SUCCESS;
}

static int get_results(const desc *h, int64_t asked, int64_t *count, void **out) {
	int list[ENGINES];
	const int n = offered(h->graph, (int)int_of(h, 200, 0), list);
	for (int i = 0; out && i < n && i < asked; i++) {
		desc *c = live_desc(out[i]);
		if (!c || c->kind != ENGINECFG || c->final) return say(BAD_PARAM, "want new configurations to fill in");
		fill_config(c, h->graph, list[i]);
	}
	if (count) *count = out ? (n < asked ? n : asked) : n;
	return SUCCESS;
}

static int get_config(const desc *c, int name, int64_t asked, int64_t *count, void **out) {
	const int n = name == 300 || engines[c->engine].has_knob;
	if (count) *count = n;
	if (!n || !out || asked < 1) return SUCCESS;
	desc *e = live_desc(out[0]);
	if (!e || e->kind != (name == 300 ? ENGINE : KNOB_CHOICE) || e->final) return say(BAD_PARAM, "want a new descriptor to fill in");
	e->graph = c->graph;
	e->engine = c->engine;
	e->knob = c->knob;
	e->final = true;
	return SUCCESS;
}

int cudnnBackendGetAttribute(void *p, int name, int type, int64_t asked, int64_t *count, void *out) {
	CALL();
	desc *d = live_desc(p);
	if (!d) return say(NULL_POINTER, "no descriptor");
	if (!d->final) return say(NOT_FINALIZED, "descriptor %d is not final", d->kind);
	const rule *r = rule_of(d->kind, name);
	if (!r || (r->type == T_SCALE ? type != T_FLOAT && type != T_DOUBLE : type != r->type))
		return say(r ? ATTRIBUTE_TYPE : BAD_PARAM, "descriptor %d has no attribute %d of type %d", d->kind, name, type);
	switch (name) {
	case 202: return get_results(d, asked, count, out);
	case 300: case 302: return get_config(d, name, asked, count, out);
	case 1303: return give(asked, count, out, engines[d->engine].numerical, engines[d->engine].numericals);
	case 1305: return give(asked, count, out, &engines[d->engine].behavior, engines[d->engine].behavior >= 0);
	}
	int64_t value;
	switch (name) {
	case 1301: value = d->engine; break;
	case 402: value = engines[d->engine].workspace; break;
	case 600: value = KNOB_TYPE; break;
	case 601: value = d->knob; break;
	default: return say(NOT_SUPPORTED, "the double does not tell attribute %d", name);
	}
	if (count) *count = 1;
	if (out && asked > 0) memcpy(out, &value, size_of(type)); // little-endian
	return SUCCESS;
}

int cudnnBackendExecute(void *hp, void *pp, void *vp) {
	CALL();
	handle *h = live_handle(hp);
	const desc *plan = live_desc(pp), *pack = live_desc(vp);
	if (!h || !plan || !pack || plan->kind != PLAN || pack->kind != PACK) return say(BAD_PARAM, "want a handle, a plan and a pack");
	if (!plan->final || !pack->final) return say(NOT_FINALIZED, "the plan or the pack is not final");
	return execute(h, plan, pack);
}
