// Runs of the double of cuDNN: loops over the strides, in double.
#include "cudnn.h"

#include <math.h>

typedef struct tensor {
	int type;
	int64_t dim[4], stride[4], align;
	char *at;
} tensor;

typedef struct job {
	int kind, engine;
	tensor x, w, y;
	int64_t dilation[2], stride[2], pre[2];
	char *workspace;
	int64_t bytes;
} job;

static tensor tensor_of(const desc *d) {
	tensor t = {.type = (int)int_of(d, 901, 0), .align = int_of(d, 900, 0)};
	for (int i = 0; i < 4; i++) t.dim[i] = int_of(d, 902, i), t.stride[i] = int_of(d, 903, i);
	return t;
}

static size_t element(int type) { return type == DATA_DOUBLE ? 8 : type == DATA_FLOAT ? 4 : 2; }

// bytes is how much memory a tensor spans.
static size_t bytes(const tensor *t) {
	int64_t last = 0;
	for (int i = 0; i < 4; i++) last += (t->dim[i] - 1) * t->stride[i];
	return (size_t)(last + 1) * element(t->type);
}

// parts are the descriptors of an operation: convolution, x, w, y.
static void parts(const desc *op, const desc **conv, const desc **x, const desc **w, const desc **y) {
	static const int at[3][4] = {{702, 704, 703, 705}, {708, 710, 709, 711}, {714, 716, 715, 717}};
	const int *a = at[op->kind == FORWARD ? 0 : op->kind == BACKWARD_DATA ? 1 : 2];
	*conv = desc_of(op, a[0]), *x = desc_of(op, a[1]), *w = desc_of(op, a[2]), *y = desc_of(op, a[3]);
}

int check_operation(const desc *op) {
	const desc *c, *dx, *dw, *dy;
	parts(op, &c, &dx, &dw, &dy);
	if (c->kind != CONVOLUTION || dx->kind != TENSOR || dw->kind != TENSOR || dy->kind != TENSOR) return say(BAD_PARAM, "want a convolution and three tensors");
	const tensor x = tensor_of(dx), w = tensor_of(dw), y = tensor_of(dy);
	if (x.dim[0] != y.dim[0] || w.dim[0] != y.dim[1] || x.dim[1] % w.dim[1] || w.dim[0] % (x.dim[1] / w.dim[1]))
		return say(SHAPE, "the images and channels of x, w and y do not fit");
	for (int i = 0; i < 2; i++) {
		const int64_t in = x.dim[2 + i] + int_of(c, 104, i) + int_of(c, 105, i) - int_of(c, 102, i) * (w.dim[2 + i] - 1) - 1;
		if (in < 0 || in / int_of(c, 103, i) + 1 != y.dim[2 + i]) return say(SHAPE, "the extents of x, w and y do not fit");
	}
	const int64_t sums = int_of(c, 100, 0);
	if (sums != (x.type == DATA_DOUBLE ? DATA_DOUBLE : DATA_FLOAT)) return say(NOT_SUPPORTED_TYPE, "sums in type %ld", (long)sums);
	const int base = op->kind == FORWARD ? 700 : op->kind == BACKWARD_DATA ? 706 : 712;
	for (int i = 0; i < 2; i++) {
		const attribute *a = attr_of(op, base + i);
		if (a->type != (sums == DATA_DOUBLE ? T_DOUBLE : T_FLOAT)) return say(ATTRIBUTE_TYPE, "alpha and beta are of the type of sums");
		const double v = a->type == T_DOUBLE ? *(double *)a->elements : *(float *)a->elements;
		if (v != 1 - i) return say(NOT_SUPPORTED, "alpha is 1 and beta 0 here");
	}
	const tensor *a = op->kind == FORWARD ? &x : &y, *b = op->kind == BACKWARD_FILTER ? &x : &w, *out = op->kind == FORWARD ? &y : op->kind == BACKWARD_DATA ? &x : &w;
	if (a->type != b->type || (out->type != a->type && !(a->type == DATA_BFLOAT16 && out->type == DATA_FLOAT)))
		return say(NOT_SUPPORTED_TYPE, "operands are of one type, the result of theirs or float");
	return SUCCESS;
}

static double load(const tensor *t, int64_t at, int engine) {
	union { uint32_t u; float f; } v;
	switch (t->type) {
	case DATA_DOUBLE: return ((const double *)t->at)[at];
	case DATA_BFLOAT16: v.u = (uint32_t)((const uint16_t *)t->at)[at] << 16; return v.f;
	}
	v.f = ((const float *)t->at)[at];
	const uint32_t drop = engine == 4 ? 16 : engine == 1 || engine == 0 ? 13 : 0;
	if (drop) v.u = (v.u + (1u << (drop - 1)) - 1 + (v.u >> drop & 1)) & ~((1u << drop) - 1);
	return v.f;
}

static void store(const tensor *t, int64_t at, double s) {
	union { uint32_t u; float f; } v = {.f = (float)s};
	switch (t->type) {
	case DATA_DOUBLE: ((double *)t->at)[at] = s; return;
	case DATA_FLOAT: ((float *)t->at)[at] = v.f; return;
	}
	((uint16_t *)t->at)[at] = (uint16_t)(isnan(v.f) ? 0x7fc0 : (v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}

// sum is one element of the result, at d: over all places where x, w and y meet.
static double sum(const job *j, const int64_t *d) {
	const tensor *x = &j->x, *w = &j->w, *y = &j->y;
	const int64_t cg = w->dim[1], og = w->dim[0] / (x->dim[1] / cg);
	int64_t lo[7] = {0}, hi[7] = {x->dim[0], w->dim[0], cg, w->dim[2], w->dim[3], y->dim[2], y->dim[3]}; // n k c r s p q
#define FIX(axis, v) lo[axis] = (v), hi[axis] = (v) + 1
	switch (j->kind) {
	case FORWARD: FIX(0, d[0]); FIX(1, d[1]); FIX(5, d[2]); FIX(6, d[3]); break;
	case BACKWARD_DATA: FIX(0, d[0]); FIX(2, d[1] % cg); lo[1] = d[1] / cg * og; hi[1] = lo[1] + og; break;
	default: FIX(1, d[0]); FIX(2, d[1]); FIX(3, d[2]); FIX(4, d[3]);
	}
	double s = 0;
	for (int64_t r = lo[3]; r < hi[3]; r++)
		for (int64_t t = lo[4]; t < hi[4]; t++)
			for (int64_t p = lo[5]; p < hi[5]; p++) {
				const int64_t h = p * j->stride[0] + r * j->dilation[0] - j->pre[0];
				if (h < 0 || h >= x->dim[2] || (j->kind == BACKWARD_DATA && h != d[2])) continue;
				for (int64_t q = lo[6]; q < hi[6]; q++) {
					const int64_t v = q * j->stride[1] + t * j->dilation[1] - j->pre[1];
					if (v < 0 || v >= x->dim[3] || (j->kind == BACKWARD_DATA && v != d[3])) continue;
					for (int64_t n = lo[0]; n < hi[0]; n++)
						for (int64_t k = lo[1]; k < hi[1]; k++)
							for (int64_t c = lo[2]; c < hi[2]; c++) {
								const int64_t xc = k / og * cg + c;
								const int64_t xi = n * x->stride[0] + xc * x->stride[1] + h * x->stride[2] + v * x->stride[3];
								const int64_t wi = k * w->stride[0] + c * w->stride[1] + r * w->stride[2] + t * w->stride[3];
								const int64_t yi = n * y->stride[0] + k * y->stride[1] + p * y->stride[2] + q * y->stride[3];
								const double a = j->kind == FORWARD ? load(x, xi, j->engine) : load(y, yi, j->engine);
								const double b = j->kind == BACKWARD_FILTER ? load(x, xi, j->engine) : load(w, wi, j->engine);
								s += a * b;
							}
				}
			}
	return s;
}

static void run(void *arg) {
	job *j = arg;
	const tensor *out = j->kind == FORWARD ? &j->y : j->kind == BACKWARD_DATA ? &j->x : &j->w;
	if (j->bytes) memset(j->workspace, 0xa5, (size_t)j->bytes); // it is ours: what else lies there is lost
	int64_t d[4];
	for (d[0] = 0; d[0] < out->dim[0]; d[0]++)
		for (d[1] = 0; d[1] < out->dim[1]; d[1]++)
			for (d[2] = 0; d[2] < out->dim[2]; d[2]++)
				for (d[3] = 0; d[3] < out->dim[3]; d[3]++) {
					const double noise = j->engine == 0 ? 1 + (double)(rand() % 1000) / 1000 : 1;
					store(out, d[0] * out->stride[0] + d[1] * out->stride[1] + d[2] * out->stride[2] + d[3] * out->stride[3], sum(j, d) * noise);
				}
	if (j->bytes) memset(j->workspace, 0x5a, (size_t)j->bytes);
}

static int bind_tensor(tensor *t, const desc *d, const desc *pack) {
	const attribute *ids = attr_of(pack, 1000), *places = attr_of(pack, 1001);
	int found = 0;
	*t = tensor_of(d);
	for (int64_t i = 0; i < ids->count; i++)
		if (((const int64_t *)ids->elements)[i] == int_of(d, 906, 0)) t->at = ((char *const *)places->elements)[i], found++;
	if (found != 1) return say(found ? DUPLICATED : BAD_PARAM, "tensor %ld is %d times in the pack", (long)int_of(d, 906, 0), found);
	if ((uintptr_t)t->at % (uintptr_t)t->align) return say(MISALIGNED, "tensor %ld is not aligned to %ld", (long)int_of(d, 906, 0), (long)t->align);
	if (!eb_machine()->range(t->at, bytes(t))) return say(BAD_PARAM, "tensor %ld is not in device memory", (long)int_of(d, 906, 0));
	return SUCCESS;
}

int execute(handle *h, const desc *plan, const desc *pack) {
	if (!h->used && eb_machine()->capturing(h->stream)) return say(EXECUTION, "what a handle's first run allocates no capture allows");
	if (eb_machine()->device() != h->device) return say(BAD_PARAM, "another device is current than the handle's");
	const desc *op = desc_of(plan->graph, 801), *c, *x, *w, *y;
	parts(op, &c, &x, &w, &y);
	job j = {.kind = op->kind, .engine = plan->engine, .bytes = engines[plan->engine].workspace};
	int status = bind_tensor(&j.x, x, pack);
	if (!status) status = bind_tensor(&j.w, w, pack);
	if (!status) status = bind_tensor(&j.y, y, pack);
	if (status) return status;
	for (int i = 0; i < 2; i++) j.dilation[i] = int_of(c, 102, i), j.stride[i] = int_of(c, 103, i), j.pre[i] = int_of(c, 105, i);
	j.workspace = *(char *const *)attr_of(pack, 1003)->elements;
	if (j.bytes && ((uintptr_t)j.workspace % 256 || !eb_machine()->range(j.workspace, (size_t)j.bytes)))
		return say(BAD_PARAM, "the workspace is not %ld aligned bytes of device memory", (long)j.bytes);
	job *kept = malloc(sizeof *kept);
	*kept = j;
	if (eb_machine()->enqueue(h->stream, "cuDNN convolution", run, free, kept)) {
		free(kept);
		return say(EXECUTION, "the stream takes nothing");
	}
	h->used = true;
	return SUCCESS;
}
