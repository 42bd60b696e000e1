// What the peers of collbench have in common: the loop that measure.go runs, over
// all-reduces of another library. Both languages compile it.
#ifndef PEER_H
#define PEER_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A group is a library's ranks, as one of them sees it.
struct group {
	void *self;
	int rank, ranks;
	void (*all_reduce)(void *self, float *x, size_t n); // the sum, in place
	void (*barrier)(void *self);
	void (*broadcast)(void *self, int *x); // rank 0's
};

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// value is element i of rank r's vector at the start of a batch: 1 to 8.
static float value(int r, size_t i) { return (float)((r * 3 + i) % 8 + 1); }

static void fill(float *x, size_t n, int rank) {
	size_t have = n < 8 ? n : 8;
	for (size_t i = 0; i < have; i++)
		x[i] = value(rank, i);
	for (; have < n; have *= 2)
		memcpy(x + have, x, sizeof *x * (have < n - have ? have : n - have));
}

// wrong counts elements that are not what a batch must leave: its first all-reduce
// sums, the others multiply.
static long wrong(const float *x, size_t n, int ranks, int inner) {
	long count = 0;
	double want[8];
	for (size_t k = 0; k < 8; k++) {
		want[k] = 0;
		for (int r = 0; r < ranks; r++)
			want[k] += value(r, k);
		want[k] *= pow(ranks, inner - 1);
	}
	for (size_t i = 0; i < n; i++)
		count += !(fabs(x[i] - want[i % 8]) <= 1e-5 * want[i % 8]);
	return count;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// measure times vectors of so many bytes until rank 0 has seen enough, prints a line
// of JSON there, and is whether all elements were right on this rank.
static int measure(struct group g, size_t bytes, int iters, double seconds) {
	enum { fewest = 5 };
	size_t n = bytes / sizeof(float);
	int inner = bytes <= 1 << 20 ? 10 : 1, reps = 0, stop = 0;
	long bad = 0;
	float *x = (float *)malloc(n * sizeof *x);
	double *times = (double *)malloc((iters / inner + fewest + 1) * sizeof *times);
	if (!x || !times) {
		fprintf(stderr, "no memory for %zu bytes\n", bytes);
		exit(1);
	}
	double end = now() + seconds;
	for (int batch = 0; !stop; batch++) {
		fill(x, n, g.rank);
		g.barrier(g.self);
		double begin = now();
		for (int i = 0; i < inner; i++)
			g.all_reduce(g.self, x, n);
		if (batch > 0) // the first one maps memory
			times[reps++] = (now() - begin) / inner;
		if (batch < 2 || batch % 16 == 0)
			bad += wrong(x, n, g.ranks, inner);
		stop = reps >= fewest && (reps * inner >= iters || now() > end);
		g.broadcast(g.self, &stop);
	}
	if (g.rank == 0) {
		qsort(times, reps, sizeof *times, ascending);
		printf("{\"bytes\":%zu,\"best_us\":%.3f,\"p10_us\":%.3f,\"median_us\":%.3f,\"reps\":%d,\"wrong\":%ld}\n", bytes,
		       times[0] * 1e6, times[reps / 10] * 1e6, times[reps / 2] * 1e6, reps, bad);
	}
	free(times);
	free(x);
	return bad == 0;
}
#endif
