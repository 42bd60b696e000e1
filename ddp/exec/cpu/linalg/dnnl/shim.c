//go:build cgo && !nodnnl

#include "shim.h"
#include "compat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// TRY runs a oneDNN call; on an error it notes the call and leaves by `fail`.
#define TRY(name, call) \
	do { \
		st = (call); \
		if (st != dnnl_success) { *where = (name); goto fail; } \
	} while (0)

struct eb_engine {
	const eb_api *api;
	int threads;
	dnnl_engine_t eng;
	dnnl_stream_t stream;
	dnnl_primitive_attr_t attr; // scratchpad from the caller
};

// Where a memory lives.
enum { IN_DST, IN_A, IN_B, IN_SCRATCH, NUM_PLACES };

enum { MAX_STEPS = 5, MAX_ARGS = 4, MAX_MEMS = 16 };

typedef struct {
	dnnl_memory_t mem;
	int place;
	size_t offset; // bytes
} slot;

typedef struct {
	const char *name;
	dnnl_primitive_t prim;
	int nargs;
	dnnl_exec_arg_t args[MAX_ARGS];
	char impl[80]; // oneDNN 3 joins two names
} step;

struct eb_plan {
	eb_engine *e;
	dnnl_stream_t own; // of a plan that runs beside others, else NULL
	int threads; // the engine's, or 1
	dnnl_data_type_t mul; // type of the numbers that are multiplied
	size_t scratch;
	const char *where; // the call that failed in the last run
	int nslots, nsteps;
	slot slots[MAX_MEMS];
	step steps[MAX_STEPS];
	int fold; // after the steps, sum windows into dst
	eb_conv geometry;
	size_t seen; // where the windows are in scratch, bytes
};

// The OpenMP team of the calling thread. Primitives are planned for a number
// of threads, so it must be the same at creation and at execution, however busy
// the machine is (OMP_DYNAMIC).
static void use_threads(const eb_api *api, int threads) {
	api->omp_set_dynamic(0);
	if (api->omp_get_max_threads() != threads) api->omp_set_num_threads(threads);
}

typedef struct {
	const eb_api *api;
	int size;
} team;

static void count_team(void *p) {
	team *t = p;
	if (t->api->omp_get_thread_num() == 0) t->size = t->api->omp_get_num_threads();
}

int eb_team_size(const eb_api *api, int threads) {
	team t = {.api = api};
	use_threads(api, threads);
	api->GOMP_parallel(count_team, &t, 0, 0);
	return t.size;
}

void eb_version(const eb_engine *e, int *major, int *minor, int *patch) {
	const dnnl_version_t *v = e->api->version();
	*major = v->major, *minor = v->minor, *patch = v->patch;
}

int eb_has_bf16(const eb_engine *e) {
	return (e->api->get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

int eb_engine_new(const eb_api *api, int threads, eb_engine **out, const char **where) {
	dnnl_status_t st = dnnl_out_of_memory;
	eb_engine *e = calloc(1, sizeof *e);
	*where = "allocating the engine";
	if (!e) return st;
	e->api = api;
	e->threads = threads;
	use_threads(e->api, threads);
	TRY("dnnl_engine_create", api->engine_create(&e->eng, dnnl_cpu, 0));
	TRY("dnnl_stream_create", api->stream_create(&e->stream, e->eng, dnnl_stream_default_flags));
	TRY("dnnl_primitive_attr_create", api->primitive_attr_create(&e->attr));
	TRY("dnnl_primitive_attr_set_scratchpad_mode",
			api->primitive_attr_set_scratchpad_mode(e->attr, dnnl_scratchpad_mode_user));
	*out = e;
	return 0;
fail:
	eb_engine_free(e);
	return st;
}

void eb_engine_free(eb_engine *e) {
	if (!e) return;
	const eb_api *api = e->api;
	if (e->attr) api->primitive_attr_destroy(e->attr);
	if (e->stream) api->stream_destroy(e->stream);
	if (e->eng) api->engine_destroy(e->eng);
	free(e);
}

static eb_plan *plan_for(eb_engine *e, int bf16, int threads) {
	eb_plan *p = calloc(1, sizeof *p);
	if (p) p->e = e, p->threads = threads, p->mul = bf16 ? dnnl_bf16 : dnnl_f32;
	use_threads(e->api, threads);
	return p;
}

static eb_plan *plan_new(eb_engine *e, int bf16) { return plan_for(e, bf16, e->threads); }

void eb_plan_free(eb_plan *p) {
	if (!p) return;
	const eb_api *api = p->e->api;
	if (p->own) api->stream_destroy(p->own);
	for (int i = 0; i < p->nsteps; i++) api->primitive_destroy(p->steps[i].prim);
	for (int i = 0; i < p->nslots; i++) api->memory_destroy(p->slots[i].mem);
	free(p);
}

size_t eb_plan_scratch(const eb_plan *p) { return p->scratch; }

// add_slot makes a memory of the given description in a place. In scratch it
// takes the next free range, 64-byte aligned.
static dnnl_status_t add_slot(eb_plan *p, md_ref md, int place, dnnl_memory_t *out) {
	if (p->nslots == MAX_MEMS) return dnnl_runtime_error;
	const eb_api *api = p->e->api;
	slot *s = &p->slots[p->nslots];
	dnnl_status_t st = api->memory_create(&s->mem, md, p->e->eng, DNNL_MEMORY_NONE);
	if (st != dnnl_success) return st;
	p->nslots++;
	s->place = place;
	if (place == IN_SCRATCH) {
		s->offset = p->scratch;
		p->scratch += (api->memory_desc_get_size(md) + 63) / 64 * 64;
	}
	*out = s->mem;
	return dnnl_success;
}

// add_step appends a primitive with its arguments and the scratchpad that it
// wants.
static dnnl_status_t add_step(eb_plan *p, const char *name, const_dnnl_primitive_desc_t pd, int nargs, const dnnl_exec_arg_t *args) {
	if (p->nsteps == MAX_STEPS || nargs >= MAX_ARGS) return dnnl_runtime_error;
	const eb_api *api = p->e->api;
	step *s = &p->steps[p->nsteps];
	dnnl_status_t st = api->primitive_create(&s->prim, pd);
	if (st != dnnl_success) return st;
	p->nsteps++;
	s->name = name;
	s->nargs = nargs;
	memcpy(s->args, args, (size_t)nargs * sizeof *args);
	const char *impl = NULL;
	if (api->primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &impl) == dnnl_success && impl)
		snprintf(s->impl, sizeof s->impl, "%s", impl);
	md_ref pad = api->primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	if (!pad || api->memory_desc_get_size(pad) == 0) return dnnl_success;
	dnnl_memory_t mem;
	st = add_slot(p, pad, IN_SCRATCH, &mem);
	if (st == dnnl_success) s->args[s->nargs++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, mem};
	return st;
}

// add_reorder copies memory `from` (described by f) to `to` (described by t).
static dnnl_status_t add_reorder(eb_plan *p, dnnl_memory_t from, md_ref f, dnnl_memory_t to, md_ref t) {
	const eb_api *api = p->e->api;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t st = api->reorder_primitive_desc_create(&pd, f, p->e->eng, t, p->e->eng, p->e->attr);
	if (st != dnnl_success) return st;
	dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
	st = add_step(p, "reorder", pd, 2, args);
	api->primitive_desc_destroy(pd);
	return st;
}

// input is the memory of an operand in the layout and type `want`: the caller's
// buffer itself, or a copy in scratch.
static dnnl_status_t input(eb_plan *p, int place, md_ref have, md_ref want, dnnl_memory_t *out) {
	const eb_api *api = p->e->api;
	dnnl_status_t st = add_slot(p, have, place, out);
	if (st != dnnl_success || api->memory_desc_equal(have, want)) return st;
	dnnl_memory_t from = *out;
	st = add_slot(p, want, IN_SCRATCH, out);
	return st != dnnl_success ? st : add_reorder(p, from, have, *out, want);
}

int eb_plan_conv(eb_engine *e, int bf16, int op, const eb_conv *g, eb_plan **out, const char **where) {
	const eb_api *api = e->api;
	dnnl_status_t st = dnnl_out_of_memory;
	md_own x = {0}, y = {0}, w = {0}, xm = {0}, ym = {0}, any = {0}, anyf = {0}; // xm, ym, any: as multiplied
	dnnl_primitive_desc_t fwd = NULL, pd = NULL;
	dnnl_memory_t from, to, wmem;
	eb_plan *p = plan_new(e, bf16);
	*where = "allocating the plan";
	if (!p) return st;

	const int64_t xd[] = {g->n, g->c, g->h, g->w}, xs[] = {g->h * g->w * g->c, 1, g->w * g->c, g->c};
	const int64_t xrows[] = {g->h * g->row * g->c, 1, g->row * g->c, g->c}; // as the caller has them
	const int64_t yd[] = {g->n, g->o, g->oh, g->ow}, ys[] = {g->oh * g->ow * g->o, 1, g->ow * g->o, g->o};
	const int64_t og = g->o / g->groups, cg = g->c / g->groups, k = g->kh * g->kw;
	const int64_t wd[] = {g->groups, og, cg, g->kh, g->kw}, ws[] = {og * cg * k, cg * k, k, g->kw, 1};
	const int first = g->groups == 1; // without groups the weight has four axes
	const conv_window win = {{g->sh, g->sw}, {g->dh - 1, g->dw - 1}, {g->pt, g->pl}, {g->pb, g->pr}};

	TRY("describing x", md_make(api, &x, dnnl_f32, 4, xd, xrows));
	TRY("describing x", md_make(api, &xm, p->mul, 4, xd, xs));
	TRY("describing y", md_make(api, &y, dnnl_f32, 4, yd, ys));
	TRY("describing y", md_make(api, &ym, p->mul, 4, yd, ys));
	TRY("describing w", md_make(api, &w, dnnl_f32, 5 - first, wd + first, ws + first));
	TRY("describing w", md_make(api, &any, p->mul, 5 - first, wd + first, NULL));
	TRY("describing dw", md_make(api, &anyf, dnnl_f32, 5 - first, wd + first, NULL));
	TRY("choosing a forward convolution", pd_conv_fwd(api, &fwd, e->eng, e->attr, md_of(&xm), md_of(&any), md_of(&y), &win));
	switch (op) {
	case EB_FORWARD: {
		md_ref want = api->primitive_desc_query_md(fwd, dnnl_query_weights_md, 0);
		TRY("reordering w", input(p, IN_B, md_of(&w), want, &wmem));
		TRY("binding x", input(p, IN_A, md_of(&x), md_of(&xm), &from));
		TRY("binding y", add_slot(p, md_of(&y), IN_DST, &to));
		dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, wmem}, {DNNL_ARG_DST, to}};
		TRY("making the forward convolution", add_step(p, "conv", fwd, 3, args));
		break;
	}
	case EB_GRAD_X: {
		TRY("choosing a data gradient",
				pd_conv_bwd_data(api, &pd, e->eng, e->attr, md_of(&x), md_of(&any), md_of(&ym), &win, fwd));
		md_ref want = api->primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
		TRY("reordering w", input(p, IN_A, md_of(&w), want, &wmem));
		TRY("binding dy", input(p, IN_B, md_of(&y), md_of(&ym), &from));
		TRY("binding dx", add_slot(p, md_of(&x), IN_DST, &to));
		dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, from}, {DNNL_ARG_WEIGHTS, wmem}, {DNNL_ARG_DIFF_SRC, to}};
		TRY("making the data gradient", add_step(p, "conv_grad_x", pd, 3, args));
		break;
	}
	default: {
		dnnl_memory_t dy;
		TRY("choosing a weight gradient",
				pd_conv_bwd_weights(api, &pd, e->eng, e->attr, md_of(&xm), md_of(&anyf), md_of(&ym), &win, fwd));
		md_ref want = api->primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0);
		TRY("binding x", input(p, IN_A, md_of(&x), md_of(&xm), &from));
		TRY("binding dy", input(p, IN_B, md_of(&y), md_of(&ym), &dy));
		TRY("binding dw", add_slot(p, md_of(&w), IN_DST, &to));
		const int same = api->memory_desc_equal(want, md_of(&w));
		wmem = to;
		if (!same) TRY("binding dw", add_slot(p, want, IN_SCRATCH, &wmem));
		dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, wmem}};
		TRY("making the weight gradient", add_step(p, "conv_grad_w", pd, 3, args));
		if (!same) TRY("reordering dw", add_reorder(p, wmem, want, to, md_of(&w)));
	}
	}
	*out = p;
	p = NULL;
fail:
	if (pd) api->primitive_desc_destroy(pd);
	if (fwd) api->primitive_desc_destroy(fwd);
	md_free(api, &x), md_free(api, &y), md_free(api, &w), md_free(api, &xm), md_free(api, &ym), md_free(api, &any), md_free(api, &anyf);
	eb_plan_free(p);
	return st;
}

// mat is a matrix: rows and columns, and their strides in memory.
typedef struct {
	int64_t dims[2], strides[2];
} mat;

// part is a matrix within another, whose rows, or columns if it lies transposed,
// are ld numbers apart.
static mat part(int64_t rows, int64_t cols, int64_t ld, int transposed) {
	return (mat){{rows, cols}, {transposed ? 1 : ld, transposed ? ld : 1}};
}

static mat matrix(int64_t rows, int64_t cols, int transposed) { return part(rows, cols, transposed ? rows : cols, transposed); }

// add_matmul appends d = a·b on memories that exist already: a and b of the type
// that is multiplied, d of float32.
static dnnl_status_t add_matmul(eb_plan *p, mat a, dnnl_memory_t am, mat b, dnnl_memory_t bm, mat d, dnnl_memory_t dm) {
	const eb_api *api = p->e->api;
	md_own ad = {0}, bd = {0}, dd = {0};
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t st = md_make(api, &ad, p->mul, 2, a.dims, a.strides);
	if (st == dnnl_success) st = md_make(api, &bd, p->mul, 2, b.dims, b.strides);
	if (st == dnnl_success) st = md_make(api, &dd, dnnl_f32, 2, d.dims, d.strides);
	if (st == dnnl_success) st = pd_matmul(api, &pd, p->e->eng, p->e->attr, md_of(&ad), md_of(&bd), md_of(&dd));
	if (st == dnnl_success) {
		dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, am}, {DNNL_ARG_WEIGHTS, bm}, {DNNL_ARG_DST, dm}};
		st = add_step(p, "matmul", pd, 3, args);
		api->primitive_desc_destroy(pd);
	}
	md_free(api, &ad), md_free(api, &bd), md_free(api, &dd);
	return st;
}

// result is the float32 memory of a matrix that is written.
static dnnl_status_t result(eb_plan *p, mat m, int place, dnnl_memory_t *out) {
	const eb_api *api = p->e->api;
	md_own d = {0};
	dnnl_status_t st = md_make(api, &d, dnnl_f32, 2, m.dims, m.strides);
	if (st == dnnl_success) st = add_slot(p, md_of(&d), place, out);
	md_free(api, &d);
	return st;
}

// factor is the memory of a matrix that is multiplied: the caller's buffer, or
// a rounded copy in scratch.
static dnnl_status_t factor(eb_plan *p, mat m, int place, dnnl_memory_t *out) {
	const eb_api *api = p->e->api;
	md_own d = {0}, r = {0};
	dnnl_status_t st = md_make(api, &d, dnnl_f32, 2, m.dims, m.strides);
	if (st == dnnl_success) st = md_make(api, &r, p->mul, 2, m.dims, m.strides);
	if (st == dnnl_success) st = input(p, place, md_of(&d), md_of(&r), out);
	md_free(api, &d), md_free(api, &r);
	return st;
}

int eb_plan_matmul(eb_engine *e, int bf16, int alone, const eb_product *g, eb_plan **out, const char **where) {
	const eb_api *api = e->api;
	dnnl_status_t st = dnnl_out_of_memory;
	dnnl_memory_t am, bm, dm;
	eb_plan *p = plan_for(e, bf16, alone ? 1 : e->threads);
	*where = "allocating the plan";
	if (!p) return st;
	const mat a = part(g->m, g->k, g->lda, g->ta), b = part(g->k, g->n, g->ldb, g->tb), d = part(g->m, g->n, g->ldd, 0);
	if (alone) TRY("dnnl_stream_create", api->stream_create(&p->own, e->eng, dnnl_stream_default_flags));
	TRY("binding a", factor(p, a, g->exchanged ? IN_B : IN_A, &am));
	TRY("binding b", factor(p, b, g->exchanged ? IN_A : IN_B, &bm));
	TRY("binding dst", result(p, d, IN_DST, &dm));
	TRY("making the matrix product", add_matmul(p, a, am, b, bm, d, dm));
	*out = p;
	return 0;
fail:
	eb_plan_free(p);
	return st;
}

int eb_plan_head(eb_engine *e, int bf16, int op, int64_t n, int64_t o, int64_t c, int64_t taps, eb_plan **out, const char **where) {
	const eb_api *api = e->api;
	dnnl_status_t st = dnnl_out_of_memory;
	md_own last = {0}, first = {0};
	dnnl_memory_t xuser, x, w, y;
	eb_plan *p = plan_new(e, bf16);
	*where = "allocating the plan";
	if (!p) return st;
	// x as the user has it, channels last, and in the order of the weight.
	const int64_t k = c * taps, dims[] = {n, c, taps}, user[] = {k, 1, c}, ordered[] = {k, taps, 1};
	const int x_at = op == EB_GRAD_X ? IN_DST : IN_A, y_at = op == EB_FORWARD ? IN_DST : IN_B;
	const int w_at = op == EB_FORWARD ? IN_B : op == EB_GRAD_X ? IN_A : IN_DST;
	TRY("describing x", md_make(api, &last, dnnl_f32, 3, dims, user));
	TRY("describing x", md_make(api, &first, op == EB_GRAD_X ? dnnl_f32 : p->mul, 3, dims, ordered));
	TRY("binding x", add_slot(p, md_of(&last), x_at, &xuser));
	TRY("binding x", add_slot(p, md_of(&first), IN_SCRATCH, &x));
	TRY("binding w", (op == EB_GRAD_W ? result : factor)(p, matrix(o, k, 0), w_at, &w));
	TRY("binding y", (op == EB_FORWARD ? result : factor)(p, matrix(n, o, 0), y_at, &y));
	if (op != EB_GRAD_X) TRY("reordering x", add_reorder(p, xuser, md_of(&last), x, md_of(&first)));
	*where = "making the matrix product";
	switch (op) {
	case EB_FORWARD: // y (N,O) = x (N,k) · wᵀ
		TRY(*where, add_matmul(p, matrix(n, k, 0), x, matrix(k, o, 1), w, matrix(n, o, 0), y));
		break;
	case EB_GRAD_X: // dx (N,k) = dy (N,O) · w
		TRY(*where, add_matmul(p, matrix(n, o, 0), y, matrix(o, k, 0), w, matrix(n, k, 0), x));
		TRY("reordering dx", add_reorder(p, x, md_of(&first), xuser, md_of(&last)));
		break;
	default: // dw (O,k) = dyᵀ · x
		TRY(*where, add_matmul(p, matrix(o, n, 1), y, matrix(n, k, 0), x, matrix(o, k, 0), w));
	}
	*out = p;
	p = NULL;
fail:
	md_free(api, &last), md_free(api, &first);
	eb_plan_free(p);
	return st;
}

int eb_plan_fold(eb_engine *e, int bf16, const eb_conv *g, eb_plan **out, const char **where) {
	const eb_api *api = e->api;
	dnnl_status_t st = dnnl_out_of_memory;
	md_own plain = {0}, last = {0};
	dnnl_memory_t wuser, w, dy, seen;
	eb_plan *p = plan_new(e, bf16);
	*where = "allocating the plan";
	if (!p) return st;
	const int64_t taps = g->kh * g->kw, k = g->c * taps, pixels = g->n * g->oh * g->ow;
	const int64_t dims[] = {g->o, g->c, taps}, user[] = {k, taps, 1}, chlast[] = {k, 1, g->c};
	TRY("describing w", md_make(api, &plain, dnnl_f32, 3, dims, user));
	TRY("describing w", md_make(api, &last, p->mul, 3, dims, chlast));
	TRY("binding w", add_slot(p, md_of(&plain), IN_A, &wuser));
	TRY("binding w", add_slot(p, md_of(&last), IN_SCRATCH, &w));
	TRY("binding dy", factor(p, matrix(pixels, g->o, 0), IN_B, &dy));
	p->fold = 1, p->geometry = *g, p->seen = p->scratch;
	TRY("binding the windows", result(p, matrix(pixels, k, 0), IN_SCRATCH, &seen));
	TRY("reordering w", add_reorder(p, wuser, md_of(&plain), w, md_of(&last)));
	TRY("making the matrix product",
			add_matmul(p, matrix(pixels, g->o, 0), dy, matrix(g->o, k, 0), w, matrix(pixels, k, 0), seen));
	*out = p;
	p = NULL;
fail:
	md_free(api, &plain), md_free(api, &last);
	eb_plan_free(p);
	return st;
}

// fold_image adds each window of one image to the pixels of dx that it covers.
static void fold_image(const eb_conv *g, float *dx, const float *seen) {
	const int64_t c = g->c;
	memset(dx, 0, (size_t)(g->h * g->w * c) * sizeof *dx);
	for (int64_t oh = 0; oh < g->oh; oh++)
		for (int64_t ow = 0; ow < g->ow; ow++)
			for (int64_t kh = 0; kh < g->kh; kh++, seen += g->kw * c) {
				const int64_t ih = oh * g->sh + kh * g->dh - g->pt, iw = ow * g->sw - g->pl;
				if (ih < 0 || ih >= g->h) continue;
				float *row = dx + ih * g->w * c;
				if (g->dw == 1 && iw >= 0 && iw + g->kw <= g->w) { // all taps, side by side
					for (int64_t i = 0; i < g->kw * c; i++) row[iw * c + i] += seen[i];
					continue;
				}
				for (int64_t kw = 0; kw < g->kw; kw++) {
					const int64_t at = iw + kw * g->dw;
					if (at < 0 || at >= g->w) continue;
					for (int64_t i = 0; i < c; i++) row[at * c + i] += seen[kw * c + i];
				}
			}
}

// fold_job is a fold, shared among the threads of OpenMP.
typedef struct {
	const eb_api *api;
	const eb_conv *g;
	float *dx;
	const float *seen;
} fold_job;

// fold_share folds the images that are this thread's.
static void fold_share(void *job) {
	const fold_job *j = job;
	const eb_conv *g = j->g;
	const int64_t image = g->h * g->w * g->c, windows = g->oh * g->ow * g->kh * g->kw * g->c;
	const int64_t i = j->api->omp_get_thread_num(), of = j->api->omp_get_num_threads();
	for (int64_t n = g->n * i / of; n < g->n * (i + 1) / of; n++) fold_image(g, j->dx + n * image, j->seen + n * windows);
}

static void fold(const eb_api *api, const eb_conv *g, float *dx, const float *seen) {
	fold_job job = {api, g, dx, seen};
	api->GOMP_parallel(fold_share, &job, 0, 0);
}

int eb_plan_run(eb_plan *p, void *dst, void *a, void *b, void *scratch) {
	const eb_api *api = p->e->api;
	const char **where = &p->where;
	dnnl_status_t st = dnnl_success;
	char *base[NUM_PLACES] = {dst, a, b, scratch};
	dnnl_stream_t stream = p->own ? p->own : p->e->stream;
	use_threads(p->e->api, p->threads);
	for (int i = 0; i < p->nslots; i++)
		TRY("binding a buffer",
				api->memory_set_data_handle(p->slots[i].mem, base[p->slots[i].place] + p->slots[i].offset));
	for (int i = 0; i < p->nsteps; i++)
		TRY(p->steps[i].name, api->primitive_execute(p->steps[i].prim, stream, p->steps[i].nargs, p->steps[i].args));
	TRY("dnnl_stream_wait", api->stream_wait(stream));
	if (p->fold) fold(api, &p->geometry, dst, (const float *)((char *)scratch + p->seen));
fail:
	// The buffers may be Go memory: keep no pointer to them.
	for (int i = 0; i < p->nslots; i++) {
		dnnl_status_t s = api->memory_set_data_handle(p->slots[i].mem, NULL);
		if (st == dnnl_success && s != dnnl_success) st = s, *where = "unbinding a buffer";
	}
	return st;
}

const char *eb_plan_where(const eb_plan *p) { return p->where; }

void eb_plan_describe(const eb_plan *p, char *buf, size_t len) {
	size_t n = 0;
	buf[0] = 0;
	for (int i = 0; i < p->nsteps && n < len; i++) {
		int w = snprintf(buf + n, len - n, "%s%s: %s", i ? "; " : "", p->steps[i].name, p->steps[i].impl);
		if (w < 0) return;
		n += (size_t)w;
	}
}
