// The engines of the double of cuDNN: one that nobody who wants the same bits twice may
// choose, comes first; the others differ in what they do to float32, so that a wrong
// choice shows in the numbers.
#include "cudnn.h"

// 0  sums in any order (and adds noise)     tensor cores, nondeterministic
// 1  rounds float32 to TF32                 tensor cores
// 2  multiplies float32 as such             no notes; a knob; a workspace
// 3  as 2, for any geometry                 compiled at run time
// 4  rounds float32 to bfloat16             converts its inputs down
const engine engines[ENGINES] = {
	{{0, 4}, 2, -1, false, 0},
	{{0}, 1, -1, false, 4096},
	{{0}, 0, -1, true, 1000},
	{{0}, 0, 0, false, 0},
	{{1}, 1, -1, false, 0},
};

// suits says whether an engine does a graph. As of the real ones, few do paddings that
// differ, and EBDOUBLE_CUDNN_LACKS in the environment takes more from them:
// "wide" results of narrow operands, "ready" engines for those (those that are not
// compiled at run time), or "all".
int suits(const desc *graph, int e) {
	const desc *op = desc_of(graph, 801);
	const int base = op->kind == FORWARD ? 700 : op->kind == BACKWARD_DATA ? 706 : 712;
	const desc *conv = desc_of(op, base + 2);
	const char *lacks = getenv("EBDOUBLE_CUDNN_LACKS");
	if (lacks && !strcmp(lacks, "all")) return say(NOT_SUPPORTED, "no engine does anything");
	int64_t types[3];
	for (int i = 0; i < 3; i++) types[i] = int_of(desc_of(op, base + 3 + i), 901, 0);
	const bool mixed = types[0] != types[1] || types[1] != types[2];
	if (lacks && !strcmp(lacks, "wide") && mixed) return say(NOT_SUPPORTED, "no engine mixes types");
	if (lacks && !strcmp(lacks, "ready") && mixed && e != 3) return say(NOT_SUPPORTED, "engine %d mixes no types", e);
	if (types[0] == DATA_DOUBLE && e != 3) return say(NOT_SUPPORTED, "engine %d has no float64", e);
	for (int i = 0; i < 2; i++)
		if (int_of(conv, 104, i) != int_of(conv, 105, i) && e != 3) return say(NOT_SUPPORTED, "engine %d wants equal paddings", e);
	return SUCCESS;
}

int offered(const desc *graph, int mode, int *list) {
	static const int modeA[] = {0, 4, 1, 2, 3}, fallback[] = {2, 3};
	const int *from = mode == 3 ? modeA : fallback, size = mode == 3 ? 5 : 2;
	if (mode != 3 && mode != 2) {
		say(BAD_PARAM, "there is no heuristic %d", mode);
		return -1;
	}
	int n = 0;
	for (int i = 0; i < size; i++)
		if (suits(graph, from[i]) == SUCCESS) list[n++] = from[i];
	return n;
}
