// Inside of the double of cuDNN: the part of its backend API that makes convolutions.
// The numbers are those of cudnn_graph.h, written down a second time on purpose: the
// binding has its own.
#ifndef EBTRAIN_DOUBLE_CUDNN_H
#define EBTRAIN_DOUBLE_CUDNN_H

#define _GNU_SOURCE
#include "double.h"

#include <stdbool.h>
#include <string.h>

enum {
	SUCCESS = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NULL_POINTER = 2002, MISALIGNED = 2003, NOT_FINALIZED = 2004, OUT_OF_BOUND = 2005,
	INSUFFICIENT = 2006, SHAPE = 2008, DUPLICATED = 2009, ATTRIBUTE_TYPE = 2010, NOT_SUPPORTED = 3000, NOT_SUPPORTED_TYPE = 3003,
	INTERNAL = 4000, EXECUTION = 5000,
};
enum { DATA_FLOAT = 0, DATA_DOUBLE = 1, DATA_BFLOAT16 = 9 };
enum {
	CONVOLUTION = 1, ENGINE = 2, ENGINECFG = 3, ENGINEHEUR = 4, PLAN = 5, KNOB_CHOICE = 7, FORWARD = 10, BACKWARD_FILTER = 11,
	BACKWARD_DATA = 12, GRAPH = 15, PACK = 16, TENSOR = 17,
};
enum {
	T_HANDLE = 0, T_DATA = 1, T_INT64 = 3, T_FLOAT = 4, T_DOUBLE = 5, T_POINTER = 6, T_CONV_MODE = 7, T_HEUR_MODE = 8, T_KNOB = 9,
	T_NUMERICAL = 11, T_DESC = 15, T_BEHAVIOR = 19, T_CHAR = 24,
	T_SCALE = 100, // here only: float or double
};

typedef struct handle {
	uint64_t magic;
	int device;
	void *stream;
	bool used; // memory that a first run may need is there
} handle;

// An attribute as it was set.
typedef struct attribute {
	int name, type;
	int64_t count;
	void *elements;
} attribute;

enum { MOST_ATTRIBUTES = 8 };

typedef struct desc {
	uint64_t magic;
	int kind;
	bool final;
	attribute set[MOST_ATTRIBUTES];
	int sets;
	// Of engines and configurations that heuristics filled in.
	struct desc *graph;
	int engine;
	int64_t knob;
} desc;

// cudnn.c
int say(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
const attribute *attr_of(const desc *d, int name);
int64_t int_of(const desc *d, int name, int i);
desc *desc_of(const desc *d, int name);
desc *live_desc(const void *p);
handle *live_handle(const void *p);

// cudnn_engines.c: which engines there are for a graph, and what they are like.
typedef struct engine {
	int numerical[2], numericals; // notes
	int behavior;                 // −1: none
	bool has_knob;
	int64_t workspace;
} engine;
enum { ENGINES = 5, KNOB_TYPE = 2, KNOB_VALUES = 4 };
extern const engine engines[ENGINES];
int suits(const desc *graph, int engine);
// offered lists the engines that a mode of heuristics offers, and returns how many.
int offered(const desc *graph, int mode, int *list);

// cudnn_run.c: a run of a plan on the stream of a handle.
int check_operation(const desc *op);
int execute(handle *h, const desc *plan, const desc *pack);

#endif
