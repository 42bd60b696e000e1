// Conditional nodes and their bodies. A body is a graph that its node owns; nothing
// on this machine changes a condition, so it has the value that it was made with.
#include "cuda.h"

void drop_body(graph *body) { drop_program(body->program); }

// forget_bodies ends the handles of a graph's bodies; what was made of them stays.
void forget_bodies(program *p) {
	for (int i = 0; i < p->size; i++)
		if (p->nodes[i].body) p->nodes[i].body->head.kind = NULL;
}

bool has_body(const program *p) {
	for (int i = 0; i < p->size; i++)
		if (p->nodes[i].body) return true;
	return false;
}

// holds draws the value of a condition that none was said for.
bool holds(const graph *body) {
	return body->when.flags & EB_CU_GRAPH_COND_ASSIGN_DEFAULT ? body->when.value != 0 : draw() % 2;
}

#define GRAPH_CALL(g) \
	CONTEXT_CALL(); \
	if (!live(g, GRAPH)) return INVALID_HANDLE

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph g, CUcontext ctx, unsigned int value, unsigned int flags) {
	GRAPH_CALL(g);
	if (ctx != current) return INVALID_CONTEXT;
	if (flags & ~1u) return INVALID_VALUE;
	g->conditions = realloc(g->conditions, sizeof *g->conditions * (size_t)(g->conditions_size + 1));
	g->conditions[g->conditions_size++] = (condition){value, flags, false};
	*out = (uintptr_t)g + (unsigned)g->conditions_size;
	return OK;
}

// find_condition is that of a handle, if it is the graph's and no node's yet.
static condition *find_condition(graph *g, CUgraphConditionalHandle handle) {
	uint64_t at = handle - (uintptr_t)g - 1;
	return at < (uint64_t)g->conditions_size && !g->conditions[at].used ? &g->conditions[at] : NULL;
}

// clean says whether all is 0 that a conditional node's parameters do not use.
static bool clean(const CUgraphNodeParams *p) {
	const char *bytes = (const char *)p;
	for (size_t i = 0; i < sizeof *p; i++)
		if (bytes[i] && i >= sizeof p->type && (i < offsetof(CUgraphNodeParams, conditional) || i >= offsetof(CUgraphNodeParams, conditional) + sizeof p->conditional)) return false;
	return true;
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *params) {
	GRAPH_CALL(g);
	if (n || after || edges || params->type != EB_CU_GRAPH_NODE_TYPE_CONDITIONAL || params->conditional.type != EB_CU_GRAPH_COND_TYPE_IF) return NOT_SUPPORTED;
	condition *c = find_condition(g, params->conditional.handle);
	if (!c || !clean(params) || params->conditional.size != 1) return INVALID_VALUE;
	if (params->conditional.ctx != current) return INVALID_CONTEXT;
	c->used = true;
	graph *body = calloc(1, sizeof *body);
	body->head.kind = GRAPH;
	body->program = new_program();
	body->inner = true;
	body->self[0] = body;
	body->when = *c;
	node *added = append_node(g->program);
	added->kind = EB_CU_GRAPH_NODE_TYPE_CONDITIONAL;
	added->body = body;
	params->conditional.phGraph_out = body->self;
	*out = added;
	return OK;
}

CUresult cuStreamBeginCaptureToGraph(CUstream s, CUgraph g, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode) {
	GRAPH_CALL(g);
	int bad = check_stream(s);
	if (bad) return bad;
	if (n || after || edges || mode != EB_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL || g->program->size) return NOT_SUPPORTED;
	return begin_capture(s, keep_program(g->program), g);
}

// forbidden_node is a node that no body may hold, or NULL.
static node *forbidden_node(const program *p) {
	for (int i = 0; i < p->size; i++)
		if (p->nodes[i].kind == EB_CU_GRAPH_NODE_TYPE_HOST || p->nodes[i].kind == EB_CU_GRAPH_NODE_TYPE_EVENT_RECORD) return &p->nodes[i];
	return NULL;
}

// check_bodies: the real driver's code is said to be INVALID_VALUE; which reason and node
// it names is in no document.
int check_bodies(const graph *g, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
	for (int i = 0; i < g->conditions_size; i++)
		if (!g->conditions[i].used) {
			params->result_out = EB_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
			return INVALID_VALUE;
		}
	if (g->inner || (has_body(g->program) && live(g->executable, EXEC))) return INVALID_VALUE;
	for (int i = 0; i < g->program->size; i++) {
		const graph *body = g->program->nodes[i].body;
		node *bad = body ? forbidden_node(body->program) : NULL;
		if (bad) {
			params->hErrNode_out = bad;
			params->result_out = EB_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
			return INVALID_VALUE;
		}
	}
	return OK;
}
