// Registered memory.
#include "nccl.h"

typedef struct registration { struct memory *m; struct registration *next; } registration;
typedef struct memory { char *p; size_t n; int registered; struct memory *next; } memory;
static memory *memories;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; // of memories

int64_t placed(const char *p) {
	int64_t at = -1;
	pthread_mutex_lock(&mu);
	for (memory *m = memories; m; m = m->next)
		if (p >= m->p && p < m->p + m->n && m->registered) at = p - m->p;
	pthread_mutex_unlock(&mu);
	return at;
}

// driver is a function of libcuda's that takes a pointer and a size.
static int (*driver(const char *name))(void *, size_t) {
	void *h = dlopen("libcuda.so.1", RTLD_NOW);
	return (int (*)(void *, size_t))dlsym(h, name);
}

result ncclMemAlloc(void **p, size_t n) {
	FAULT();
	unsigned long long d;
	n = (n + (2 << 20) - 1) / (2 << 20) * (2 << 20);
	if (driver("cuMemAlloc_v2")(&d, n)) return CUDA;
	memory *m = calloc(1, sizeof *m);
	m->p = (char *)(uintptr_t)d, m->n = n;
	pthread_mutex_lock(&mu);
	m->next = memories, memories = m;
	pthread_mutex_unlock(&mu);
	eb_machine()->count("memory of NCCL's", 1);
	*p = m->p;
	return OK;
}

result ncclMemFree(void *p) {
	END();
	pthread_mutex_lock(&mu);
	memory **at = &memories;
	while (*at && (*at)->p != p) at = &(*at)->next;
	memory *m = *at;
	if (m) *at = m->next;
	pthread_mutex_unlock(&mu);
	if (!m) return ARGUMENT;
	if (m->registered) die("memory is freed that is registered");
	int r = driver("cuMemFree_v2")(p, 0);
	free(m);
	eb_machine()->count("memory of NCCL's", -1);
	return ended ? ended : r ? CUDA : OK;
}

result ncclCommRegister(comm *c, void *p, size_t n, void **handle) {
	FAULT();
	enter(c);
	pthread_mutex_lock(&mu);
	memory *m = memories;
	while (m && ((char *)p < m->p || (char *)p + n > m->p + m->n)) m = m->next;
	if (m) m->registered++;
	pthread_mutex_unlock(&mu);
	if (!m) return leave(c, fail(c, USAGE, "memory is not from ncclMemAlloc"));
	eb_machine()->count("NCCL registration", 1);
	registration *g = malloc(sizeof *g);
	*g = (registration){m, c->registrations};
	*handle = c->registrations = g;
	return leave(c, OK);
}

void deregister(comm *c, registration *g) {
	registration **at = &c->registrations;
	while (*at && *at != g) at = &(*at)->next;
	if (!*at) die("a registration is ended that is not of this communicator");
	*at = g->next;
	pthread_mutex_lock(&mu);
	g->m->registered--;
	pthread_mutex_unlock(&mu);
	free(g);
	eb_machine()->count("NCCL registration", -1);
}

result ncclCommDeregister(comm *c, void *handle) {
	END();
	enter(c);
	deregister(c, handle);
	return leave(c, ended);
}
