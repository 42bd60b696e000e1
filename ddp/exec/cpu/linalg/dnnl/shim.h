// A thin C layer over oneDNN 2.x and 3.x on the CPU. The caller's buffers are
// float32. With bf16, a plan rounds both operands to bfloat16 in scratch (in
// the same pass in which it reorders them, if it does), multiplies those and
// adds up in float32.
//
// A plan is a short list of primitives with the memories they read and write.
// It is made once; eb_plan_run binds the caller's buffers, executes the list
// and unbinds them, so that no plan holds a pointer between runs.
#ifndef EBTRAIN_DNNL_SHIM_H
#define EBTRAIN_DNNL_SHIM_H

#include <stddef.h>
#include <stdint.h>

typedef struct eb_api eb_api; // oneDNN's functions, see api.h
typedef struct eb_engine eb_engine;
typedef struct eb_plan eb_plan;

// The geometry of a convolution; see engine.ConvProblem. dh, dw: 1 is dense. row:
// from one row of an image to the next, in pixels; at least w.
typedef struct {
	int64_t n, c, h, w, row, o, oh, ow, groups, kh, kw;
	int64_t sh, sw, pt, pb, pl, pr, dh, dw;
} eb_conv;

enum { EB_FORWARD = 1, EB_GRAD_X = 2, EB_GRAD_W = 3 };

// How loading ends.
enum { EB_LOADED, EB_MISSING, EB_BROKEN };

// eb_api_open loads oneDNN from `library`, a file or a name that the dynamic
// linker searches for, and before it sets what OpenMP shall find in its
// environment. If the library is not there (EB_MISSING) or cannot be used
// (EB_BROKEN), `why` says so. eb_api_free frees the table, the library stays.
int eb_api_open(const char *library, eb_api **out, char *why, size_t len);
void eb_api_free(eb_api *api);

// How many threads OpenMP gives a team that asks for some. Fewer are not enough
// for oneDNN: its threads wait for as many as it planned for.
int eb_team_size(const eb_api *api, int threads);

// Every function below that returns an int returns a dnnl_status_t, 0 if all
// is well; where it takes `where`, it stores there the name of the call that
// went wrong.

// The engine borrows api.
int eb_engine_new(const eb_api *api, int threads, eb_engine **out, const char **where);
void eb_engine_free(eb_engine *e);
void eb_version(const eb_engine *e, int *major, int *minor, int *patch);
// Whether oneDNN may use bfloat16 instructions of this CPU; without them it
// would emulate them.
int eb_has_bf16(const eb_engine *e);

// A convolution by oneDNN's own primitive.
int eb_plan_conv(eb_engine *e, int bf16, int op, const eb_conv *g, eb_plan **out, const char **where);
// A convolution whose kernel covers the whole image (y is N×1×1×O), as a
// matrix product; `taps` is KH·KW.
int eb_plan_head(eb_engine *e, int bf16, int op, int64_t n, int64_t o, int64_t c, int64_t taps, eb_plan **out, const char **where);
// A data gradient for images of few channels: what each pixel of y says of its
// window as a matrix product, (N·OH·OW, KH·KW·C), then summed into dx.
int eb_plan_fold(eb_engine *e, int bf16, const eb_conv *g, eb_plan **out, const char **where);
// A matrix product, dst (m,n) = A·B; a holds A (m,k), or its transpose if ta; b
// holds B likewise. If exchanged, A is in b and B in a. Rows in memory are ldd,
// lda and ldb numbers apart: each matrix may be a part of a larger one.
typedef struct {
	int64_t m, n, k, lda, ldb, ldd;
	int ta, tb, exchanged;
} eb_product;
// A plan that is alone uses the thread that runs it and no other, and runs beside
// other plans of its kind on other threads.
int eb_plan_matmul(eb_engine *e, int bf16, int alone, const eb_product *g, eb_plan **out, const char **where);

size_t eb_plan_scratch(const eb_plan *p);
int eb_plan_run(eb_plan *p, void *dst, void *a, void *b, void *scratch);
// Where the last eb_plan_run went wrong.
const char *eb_plan_where(const eb_plan *p);
void eb_plan_free(eb_plan *p);
// The implementations that oneDNN chose, for people: "reorder: jit:uni; conv: brgconv:avx512_core".
void eb_plan_describe(const eb_plan *p, char *buf, size_t len);

#endif
