// What the doubles share. The double of libcuda is the machine; those of other
// libraries reach it by eb_machine(), which opens libcuda.so.1 as the real ones
// do: the one that the process has loaded already.
//
// A device address is an address of the host's, so that a double reads and
// writes at it. A stream is a thread. A double's own operation is put into a
// stream by enqueue, and then runs in its turn, also from a graph if the stream
// was being captured.
#ifndef EBTRAIN_DOUBLE_H
#define EBTRAIN_DOUBLE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct eb_machine_table {
	// enqueue puts run(arg) into a stream (a CUstream). release(arg), which may be
	// NULL, is called once when it will never run again: after it ran, or if it was
	// captured when the graph and everything made of it are destroyed. label is kept
	// as a pointer. Returns a CUresult; then neither was nor will be called.
	int (*enqueue)(void *stream, const char *label, void (*run)(void *arg), void (*release)(void *arg), void *arg);
	// capturing says whether a stream is being captured.
	int (*capturing)(void *stream);
	// fault is asked at the start of every function of every double, by the
	// function's name: it counts the call, may sleep, and returns 0 or the code that
	// the function must return without doing anything.
	int (*fault)(const char *function);
	// count notes that objects of a kind were made (+1) or destroyed (-1); kind is
	// kept as a pointer. At the end of a test all counts are 0.
	void (*count)(const char *kind, int change);
	// range says whether n bytes from p on lie in one live piece of device or pinned
	// memory.
	int (*range)(const void *p, size_t n);
	// device is the ordinal of the device that is current on this thread, or -1.
	int (*device)(void);
	// sticky breaks the device of a stream, as a kernel that fails does: from now on
	// every call returns the code. Streams go on, without running anything.
	void (*sticky)(void *stream, int code);
	// broken is the code that broke the device that is current on this thread, or 0.
	int (*broken)(void);
} eb_machine_table;

extern const eb_machine_table eb_machine_exports; // of libcuda.so.1, found by dlsym

// eb_machine finds the machine; a process without it cannot go on.
static inline const eb_machine_table *eb_machine(void) {
	static const eb_machine_table *table;
	const eb_machine_table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	if (t) return t;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (library) t = (const eb_machine_table *)dlsym(library, "eb_machine_exports");
	if (!t) {
		fprintf(stderr, "a double runs without the double of libcuda: %s\n", dlerror());
		abort();
	}
	__atomic_store_n(&table, t, __ATOMIC_RELEASE);
	return t;
}

#endif
