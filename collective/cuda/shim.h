// What Go calls of the driver: each function makes the context current on the
// calling thread and passes on. Handles and device addresses are integers here,
// so that Go holds no pointer that is not its own.
#ifndef EBTRAIN_CUDA_SHIM_H
#define EBTRAIN_CUDA_SHIM_H

#include "abi/driver.h"

typedef uintptr_t handle;

// eb_open opens a shared object, or returns 0 and says why.
handle eb_open(const char *path, char *why, size_t len);
void eb_close(handle library);
handle eb_symbol(handle library, const char *name);
// eb_where writes the file that a library was opened from.
void eb_where(handle library, char *path, size_t len);
// Calls of functions that need nothing else: size_t f(void), CUresult f(int *).
size_t eb_call_size(handle f);
int eb_call_int(handle f, int *out);

// eb_resolve fills a table, or returns NULL and the name of the first function
// that the library lacks. The table is never freed: a driver stays loaded.
const eb_cuda *eb_resolve(handle library, const char **lacks);

int eb_init(const eb_cuda *t);
const char *eb_error_name(const eb_cuda *t, int code);
const char *eb_error_text(const eb_cuda *t, int code);
int eb_device_count(const eb_cuda *t, int *n);
int eb_device(const eb_cuda *t, int ordinal, int *device);
int eb_device_name(const eb_cuda *t, int device, char *name, int len);
int eb_device_bus(const eb_cuda *t, int device, char *id, int len);
int eb_device_uuid(const eb_cuda *t, int device, unsigned char *uuid);
int eb_device_whole_uuid(const eb_cuda *t, int device, unsigned char *uuid);
int eb_device_memory(const eb_cuda *t, int device, size_t *bytes);
int eb_device_attribute(const eb_cuda *t, int device, int attribute, int *value);
int eb_retain(const eb_cuda *t, int device, handle *ctx);
int eb_release(const eb_cuda *t, int device);

// EB_ENTERING marks the code of a call that was not made, since the context could not be
// made current: the code is cuCtxSetCurrent's.
#define EB_ENTERING (1 << 16)
int eb_enter(const eb_cuda *t, handle ctx);
int eb_sync(const eb_cuda *t, handle ctx);
int eb_mem_info(const eb_cuda *t, handle ctx, size_t *free, size_t *total);
int eb_alloc(const eb_cuda *t, handle ctx, size_t bytes, uint64_t *p);
int eb_free(const eb_cuda *t, handle ctx, uint64_t p);
int eb_pin(const eb_cuda *t, handle ctx, size_t bytes, void **host, uint64_t *device);
int eb_unpin(const eb_cuda *t, handle ctx, void *host);

int eb_stream(const eb_cuda *t, handle ctx, int priority, handle *stream);
int eb_stream_close(const eb_cuda *t, handle ctx, handle stream);
int eb_stream_sync(const eb_cuda *t, handle ctx, handle stream);
int eb_stream_query(const eb_cuda *t, handle ctx, handle stream);
int eb_stream_wait(const eb_cuda *t, handle ctx, handle stream, handle event, unsigned flags);
int eb_copy_in(const eb_cuda *t, handle ctx, handle stream, uint64_t to, const void *from, size_t n);
int eb_copy_out(const eb_cuda *t, handle ctx, handle stream, void *to, uint64_t from, size_t n);
int eb_copy(const eb_cuda *t, handle ctx, handle stream, uint64_t to, uint64_t from, size_t n);
int eb_set8(const eb_cuda *t, handle ctx, handle stream, uint64_t to, unsigned char value, size_t n);
int eb_set32(const eb_cuda *t, handle ctx, handle stream, uint64_t to, uint32_t value, size_t n);
int eb_launch(const eb_cuda *t, handle ctx, handle stream, handle f, unsigned grid, unsigned block, unsigned shared, void *args);
int eb_host_func(const eb_cuda *t, handle ctx, handle stream, handle data);

int eb_event(const eb_cuda *t, handle ctx, unsigned flags, handle *event);
int eb_event_close(const eb_cuda *t, handle ctx, handle event);
int eb_event_record(const eb_cuda *t, handle ctx, handle event, handle stream, unsigned flags);
int eb_event_query(const eb_cuda *t, handle ctx, handle event);
int eb_event_sync(const eb_cuda *t, handle ctx, handle event);
int eb_event_elapsed(const eb_cuda *t, handle ctx, handle from, handle to, float *ms);

int eb_load(const eb_cuda *t, handle ctx, const void *image, handle *module);
int eb_unload(const eb_cuda *t, handle ctx, handle module);
int eb_function(const eb_cuda *t, handle ctx, handle module, const char *name, handle *f);
// eb_force loads a function now, and says in bytes how long its one parameter
// is (0: it has none; -1: this driver does not say).
int eb_force(const eb_cuda *t, handle ctx, handle f, long long *bytes);

int eb_capture(const eb_cuda *t, handle ctx, handle stream);
int eb_capture_end(const eb_cuda *t, handle ctx, handle stream, handle *graph);
int eb_capturing(const eb_cuda *t, handle ctx, handle stream, int *status);
int eb_graph_nodes(const eb_cuda *t, handle ctx, handle graph, size_t *n);
int eb_graph_close(const eb_cuda *t, handle ctx, handle graph);
int eb_instantiate(const eb_cuda *t, handle ctx, handle graph, handle *exec);

// Graphs of one conditional node, whose condition always holds. eb_bodies says whether
// the driver has what they need.
int eb_bodies(const eb_cuda *t);
int eb_graph(const eb_cuda *t, handle ctx, handle *graph);
int eb_condition(const eb_cuda *t, handle ctx, handle graph, uint64_t *condition);
int eb_add_body(const eb_cuda *t, handle ctx, handle graph, uint64_t condition, handle *body);
int eb_capture_to(const eb_cuda *t, handle ctx, handle stream, handle graph);
// eb_nodes lists at most *n nodes, and says how many there are.
int eb_nodes(const eb_cuda *t, handle ctx, handle graph, handle *nodes, size_t *n);
int eb_node_kind(const eb_cuda *t, handle ctx, handle node, int *kind);
// eb_instantiate_body says, where it fails, why and at which node, if the driver does.
int eb_instantiate_body(const eb_cuda *t, handle ctx, handle graph, handle *exec, handle *at, int *result);

int eb_exec_upload(const eb_cuda *t, handle ctx, handle exec, handle stream);
int eb_exec_launch(const eb_cuda *t, handle ctx, handle exec, handle stream);
int eb_exec_close(const eb_cuda *t, handle ctx, handle exec);

#endif
