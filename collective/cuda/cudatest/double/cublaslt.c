// The double of cuBLASLt: loops over column-major matrices, in double. Attributes are
// checked by number and size. The numbers are those of cublasLt.h, written down a
// second time on purpose: the binding has its own.
//
// Heuristics offer three algorithms: one that sums in place, in any order, and must be
// masked out; one that splits sums and needs a workspace; a plain one. An algorithm
// knows the problem and the alignment that it was asked for, and refuses others.
// EBDOUBLE_CUBLASLT_LACKS=all in the environment offers none.
#define _GNU_SOURCE
#include "double.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };
enum { IN_PLACE = 1, COMPUTE_TYPE = 2, OUTPUT_TYPE = 4 };

static const uint64_t HANDLE = 0x6c7468616e646c65, DESC = 0x6c74646573633131, LAYOUT = 0x6c746c61796f7574, PREF = 0x6c74707265663131,
					  ALGO = 0x6c74616c676f3131;

typedef struct handle { uint64_t magic; int device; } handle;
typedef struct matmul { uint64_t magic; int compute, scale; int32_t trans_a, trans_b; } matmul;
typedef struct layout { uint64_t magic; int type; uint64_t rows, cols; int64_t ld, stride; int32_t batch; } layout;
typedef struct pref { uint64_t magic, workspace; uint32_t scheme, align[4]; } pref;
typedef struct algo { uint64_t magic, id, align, scheme, split, workspace, problem, unused; } algo;
typedef struct result { algo algo; size_t workspace; int state; float waves; int reserved[4]; } result;

#define CALL() \
	do { \
		int failed = eb_machine()->fault(__func__); \
		if (failed) return failed; \
	} while (0)
#define WANT(p, kind) \
	if (!(p) || (p)->magic != (kind)) return INVALID_VALUE

static void *new_object(size_t size, uint64_t magic) {
	void *p = calloc(1, size);
	memcpy(p, &magic, sizeof magic);
	eb_machine()->count("cuBLASLt object", 1);
	return p;
}

static int drop(void *p) {
	memset(p, 0, 8);
	free(p);
	eb_machine()->count("cuBLASLt object", -1);
	return SUCCESS;
}

size_t cublasLtGetVersion(void) { return 130100; }

const char *cublasLtGetStatusName(int s) {
	switch (s) {
	case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
	case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
	case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
	}
	return "CUBLAS_STATUS_OF_THE_DOUBLE";
}

const char *cublasLtGetStatusString(int s) { return s == INVALID_VALUE ? "an unsupported value or parameter was passed" : "the double of cuBLASLt failed"; }

int cublasLtCreate(handle **out) {
	CALL();
	if (eb_machine()->device() < 0) return NOT_INITIALIZED;
	*out = new_object(sizeof **out, HANDLE);
	(*out)->device = eb_machine()->device();
	return SUCCESS;
}

int cublasLtDestroy(handle *h) {
	CALL();
	WANT(h, HANDLE);
	return drop(h);
}

int cublasLtMatmulDescCreate(matmul **out, int compute, int scale) {
	CALL();
	if (scale != (compute == COMPUTE_64F ? R_64F : R_32F)) return INVALID_VALUE;
	if (compute != COMPUTE_32F && compute != COMPUTE_64F && compute != COMPUTE_32F_FAST_TF32) return NOT_SUPPORTED;
	*out = new_object(sizeof **out, DESC);
	(*out)->compute = compute, (*out)->scale = scale;
	return SUCCESS;
}

int cublasLtMatmulDescDestroy(matmul *m) {
	CALL();
	WANT(m, DESC);
	return drop(m);
}

int cublasLtMatmulDescSetAttribute(matmul *m, int attr, const void *buf, size_t bytes) {
	CALL();
	WANT(m, DESC);
	if (bytes != 4 || (attr != 3 && attr != 4) || *(const int32_t *)buf < 0 || *(const int32_t *)buf > 1) return INVALID_VALUE;
	*(attr == 3 ? &m->trans_a : &m->trans_b) = *(const int32_t *)buf;
	return SUCCESS;
}

int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t cols, int64_t ld) {
	CALL();
	if ((type != R_32F && type != R_64F && type != R_16BF) || !rows || !cols || ld < (int64_t)rows) return INVALID_VALUE;
	*out = new_object(sizeof **out, LAYOUT);
	layout *l = *out;
	l->type = type, l->rows = rows, l->cols = cols, l->ld = ld, l->batch = 1;
	return SUCCESS;
}

int cublasLtMatrixLayoutDestroy(layout *l) {
	CALL();
	WANT(l, LAYOUT);
	return drop(l);
}

int cublasLtMatrixLayoutSetAttribute(layout *l, int attr, const void *buf, size_t bytes) {
	CALL();
	WANT(l, LAYOUT);
	if (attr == 5 && bytes == 4 && *(const int32_t *)buf > 0) l->batch = *(const int32_t *)buf;
	else if (attr == 6 && bytes == 8) l->stride = *(const int64_t *)buf;
	else return INVALID_VALUE;
	return SUCCESS;
}

int cublasLtMatmulPreferenceCreate(pref **out) {
	CALL();
	*out = new_object(sizeof **out, PREF);
	(*out)->scheme = 7;
	for (int i = 0; i < 4; i++) (*out)->align[i] = 256;
	return SUCCESS;
}

int cublasLtMatmulPreferenceDestroy(pref *p) {
	CALL();
	WANT(p, PREF);
	return drop(p);
}

int cublasLtMatmulPreferenceSetAttribute(pref *p, int attr, const void *buf, size_t bytes) {
	CALL();
	WANT(p, PREF);
	if (attr == 1 && bytes == 8) p->workspace = *(const uint64_t *)buf;
	else if (attr == 3 && bytes == 4) p->scheme = *(const uint32_t *)buf;
	else if (attr >= 5 && attr <= 8 && bytes == 4) p->align[attr - 5] = *(const uint32_t *)buf;
	else return INVALID_VALUE;
	return SUCCESS;
}

// check_problem says whether the matrices fit together, and are of types that go.
static int check_problem(const matmul *m, const layout *a, const layout *b, const layout *c, const layout *d) {
	WANT(m, DESC);
	WANT(a, LAYOUT);
	WANT(b, LAYOUT);
	WANT(c, LAYOUT);
	WANT(d, LAYOUT);
	const uint64_t ar = m->trans_a ? a->cols : a->rows, ac = m->trans_a ? a->rows : a->cols;
	const uint64_t br = m->trans_b ? b->cols : b->rows, bc = m->trans_b ? b->rows : b->cols;
	if (ar != d->rows || bc != d->cols || ac != br || c->rows != d->rows || c->cols != d->cols || c->type != d->type) return INVALID_VALUE;
	if (a->batch != b->batch || b->batch != d->batch || c->batch != d->batch) return INVALID_VALUE;
	const bool wide = a->type == R_64F;
	if (a->type != b->type || (d->type != a->type && !(a->type == R_16BF && d->type == R_32F)) || wide != (m->compute == COMPUTE_64F)) return NOT_SUPPORTED;
	return SUCCESS;
}

static uint64_t problem_of(const matmul *m, const layout *a, const layout *b, const layout *d) {
	const uint64_t v[] = {(uint64_t)m->compute, (uint64_t)m->trans_a, (uint64_t)m->trans_b, (uint64_t)a->type, (uint64_t)d->type, d->rows, d->cols,
		m->trans_a ? a->rows : a->cols, (uint64_t)b->batch};
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) h = (h ^ v[i]) * 1099511628211u;
	return h;
}

int cublasLtMatmulAlgoGetHeuristic(handle *h, matmul *m, layout *a, layout *b, layout *c, layout *d, pref *p, int asked, result *results, int *count) {
	CALL();
	WANT(h, HANDLE);
	WANT(p, PREF);
	const int status = check_problem(m, a, b, c, d);
	if (status) return status;
	const char *lacks = getenv("EBDOUBLE_CUBLASLT_LACKS");
	if (lacks && !strcmp(lacks, "all")) return NOT_SUPPORTED;
	uint64_t align = 0;
	for (int i = 0; i < 4; i++)
		if (p->align[i] > align) align = p->align[i];
	const algo all[] = {
		{ALGO, 20, align, IN_PLACE, 4, 256, problem_of(m, a, b, d), 0},
		{ALGO, 21, align, COMPUTE_TYPE, 3, 4096, problem_of(m, a, b, d), 0},
		{ALGO, 22, align, 0, 1, 0, problem_of(m, a, b, d), 0},
	};
	int n = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all && n < asked; i++) {
		if (all[i].scheme & ~p->scheme || all[i].workspace > p->workspace) continue;
		memset(&results[n], 0, sizeof results[n]);
		results[n].algo = all[i], results[n].workspace = all[i].workspace, results[n].waves = 1;
		n++;
	}
	*count = n;
	return n ? SUCCESS : NOT_SUPPORTED;
}

static int check_algo(const matmul *m, const layout *a, const layout *b, const layout *d, const algo *g) {
	return g && g->magic == ALGO && g->problem == problem_of(m, a, b, d) ? SUCCESS : INVALID_VALUE;
}

int cublasLtMatmulAlgoCheck(handle *h, matmul *m, layout *a, layout *b, layout *c, layout *d, const algo *g, result *r) {
	CALL();
	WANT(h, HANDLE);
	int status = check_problem(m, a, b, c, d);
	if (!status) status = check_algo(m, a, b, d, g);
	if (status) return status;
	memset(r, 0, sizeof *r);
	r->algo = *g, r->workspace = g->workspace, r->waves = 1;
	return SUCCESS;
}

int cublasLtMatmulAlgoConfigGetAttribute(const algo *g, int attr, void *buf, size_t bytes, size_t *written) {
	CALL();
	WANT(g, ALGO);
	const uint32_t values[] = {(uint32_t)g->id, 20, (uint32_t)g->split, (uint32_t)g->scheme, 0, 0, 15};
	if (attr < 0 || attr > 6 || bytes != 4) return INVALID_VALUE;
	memcpy(buf, &values[attr], 4);
	*written = 4;
	return SUCCESS;
}

typedef struct job {
	matmul m;
	layout a, b, d;
	const char *at_a, *at_b;
	char *at_d, *workspace;
	algo algo;
} job;

static double load(const char *at, int type, int64_t i, bool tf32) {
	union { uint32_t u; float f; } v;
	switch (type) {
	case R_64F: return ((const double *)at)[i];
	case R_16BF: v.u = (uint32_t)((const uint16_t *)at)[i] << 16; return v.f;
	}
	v.f = ((const float *)at)[i];
	if (tf32) v.u = (v.u + (1u << 12) - 1 + (v.u >> 13 & 1)) & ~((1u << 13) - 1);
	return v.f;
}

static void store(char *at, int type, int64_t i, double s) {
	union { uint32_t u; float f; } v = {.f = (float)s};
	switch (type) {
	case R_64F: ((double *)at)[i] = s; return;
	case R_32F: ((float *)at)[i] = v.f; return;
	}
	((uint16_t *)at)[i] = (uint16_t)(isnan(v.f) ? 0x7fc0 : (v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}

static void run(void *arg) {
	const job *j = arg;
	const bool tf32 = j->m.compute == COMPUTE_32F_FAST_TF32;
	const int64_t depth = (int64_t)(j->m.trans_a ? j->a.rows : j->a.cols);
	if (j->algo.workspace) memset(j->workspace, 0xa5, j->algo.workspace);
	for (int64_t batch = 0; batch < j->d.batch; batch++)
		for (int64_t col = 0; col < (int64_t)j->d.cols; col++)
			for (int64_t row = 0; row < (int64_t)j->d.rows; row++) {
				double s = j->algo.scheme & IN_PLACE ? (double)(rand() % 1000) : 0;
				for (int64_t k = 0; k < depth; k++) {
					const int64_t ia = batch * j->a.stride + (j->m.trans_a ? row * j->a.ld + k : k * j->a.ld + row);
					const int64_t ib = batch * j->b.stride + (j->m.trans_b ? k * j->b.ld + col : col * j->b.ld + k);
					s += load(j->at_a, j->a.type, ia, tf32) * load(j->at_b, j->b.type, ib, tf32);
				}
				store(j->at_d, j->d.type, batch * j->d.stride + col * j->d.ld + row, s);
			}
	if (j->algo.workspace) memset(j->workspace, 0x5a, j->algo.workspace);
}

static bool holds(const layout *l, const char *at, uint64_t align) {
	const size_t size = l->type == R_64F ? 8 : l->type == R_32F ? 4 : 2;
	const size_t last = (size_t)(l->batch - 1) * (size_t)l->stride + (size_t)(l->cols - 1) * (size_t)l->ld + l->rows;
	return (uintptr_t)at % align == 0 && eb_machine()->range(at, last * size);
}

int cublasLtMatmul(handle *h, matmul *m, const void *alpha, const char *a, layout *la, const char *b, layout *lb, const void *beta, const char *c,
		layout *lc, char *d, layout *ld, const algo *g, char *workspace, size_t bytes, void *stream) {
	CALL();
	WANT(h, HANDLE);
	if (eb_machine()->device() != h->device) return INVALID_VALUE;
	int status = check_problem(m, la, lb, lc, ld);
	if (!status) status = check_algo(m, la, lb, ld, g);
	if (status) return status;
	const double one = m->scale == R_64F ? *(const double *)alpha : *(const float *)alpha, zero = m->scale == R_64F ? *(const double *)beta : *(const float *)beta;
	if (one != 1 || zero != 0 || c != d || !holds(la, a, g->align) || !holds(lb, b, g->align) || !holds(ld, d, g->align)) return INVALID_VALUE;
	if (bytes < g->workspace || (g->workspace && ((uintptr_t)workspace % 256 || !eb_machine()->range(workspace, g->workspace)))) return INVALID_VALUE;
	job *j = malloc(sizeof *j);
	*j = (job){*m, *la, *lb, *ld, a, b, d, workspace, *g};
	if (eb_machine()->enqueue(stream, "cuBLASLt product", run, free, j)) {
		free(j);
		return EXECUTION_FAILED;
	}
	return SUCCESS;
}
