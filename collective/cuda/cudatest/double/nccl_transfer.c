// What ranks exchange: each operation is transfers to and from the others.
#include "nccl.h"

typedef struct {
	int out, peer;
	char *p;
	size_t n, at; // header and data together
	header h, theirs;
	int done;
} transfer;

static channel *from_to(comm *c, int a, int b) { return &c->sh->to[a * c->nranks + b]; }

void hang(comm *c) {
	for (int turns = 0; !c->abort;) nap(&turns);
}

static void differs(comm *c, transfer *t) {
	if (t->h.kind < SEND && t->h.kind == t->theirs.kind && t->h.placed != t->theirs.placed)
		die("registered memory beside other memory, or at another offset, in one collective");
	if (t->h.kind == t->theirs.kind && t->h.dtype == t->theirs.dtype && t->h.op == t->theirs.op && t->h.root == t->theirs.root &&
			t->h.bytes == t->theirs.bytes)
		return;
	if (knob("EBDOUBLE_NCCL_REPORT", 0)) {
		fail(c, 0, "ranks %d and %d differ", c->rank, t->peer);
		c->state = INTERNAL;
	}
	hang(c);
}

// step moves what can be moved of t.
static int step(comm *c, transfer *t) {
	size_t before = t->at, total = sizeof(header) + t->n;
	channel *ch = t->out ? from_to(c, c->rank, t->peer) : from_to(c, t->peer, c->rank);
	while (t->at < total) {
		uint64_t put = ch->put, got = ch->got;
		char *mine = t->at < sizeof(header) ? (char *)(t->out ? &t->h : &t->theirs) + t->at : t->p + t->at - sizeof(header);
		size_t n = t->at < sizeof(header) ? sizeof(header) - t->at : total - t->at;
		size_t pos = (t->out ? put : got) % CHUNK, room = t->out ? CHUNK - (put - got) : put - got;
		if (n > room) n = room;
		if (n > CHUNK - pos) n = CHUNK - pos;
		if (!n) break;
		if (t->out) memcpy(ch->data + pos, mine, n), ch->put = put + n;
		else memcpy(mine, ch->data + pos, n), ch->got = got + n;
		t->at += n;
		if (!t->out && t->at == sizeof(header)) differs(c, t);
		if (c->abort) return 1;
	}
	t->done = t->at == total;
	return t->at != before;
}

// exchange does all transfers; between two ranks, those of one direction in order.
static void exchange(comm *c, transfer *ts, int n) {
	for (int left = n, turns = 0; left && !c->abort;) {
		int moved = 0;
		left = 0;
		for (int i = 0; i < n; i++) {
			int waits = ts[i].done;
			for (int j = 0; j < i && !waits; j++)
				waits = !ts[j].done && ts[j].out == ts[i].out && ts[j].peer == ts[i].peer;
			if (!waits) moved |= step(c, &ts[i]);
			left += !ts[i].done;
		}
		if (moved) turns = 0;
		else nap(&turns);
	}
}

static transfer transfer_of(op *o, int out, int peer, const char *p, size_t n) {
	transfer t = {.out = out, .peer = peer, .p = (char *)p, .n = n};
	int p2p = o->kind == SEND || o->kind == RECV;
	t.h = (header){p2p ? SEND : o->kind, o->dtype, o->op, p2p ? 0 : o->root, n, -1, 0, {0}};
	if (!p2p) t.h.placed = placed(o->kind == ALLGATHER ? o->recv : o->send);
	return t;
}

void collective(op *o) {
	comm *c = o->c;
	int n = c->nranks, k = 0;
	size_t bytes = o->count * width(o->dtype);
	transfer *ts = calloc(2 * n, sizeof *ts);
	char **in = calloc(n, sizeof *in);
	for (int q = 0; q < n; q++) {
		const char *out = o->send;
		if (o->kind == REDUCESCATTER) out += q * bytes;
		if (o->kind == ALLGATHER) in[q] = o->recv + q * bytes;
		else if (o->kind == BROADCAST) in[q] = o->recv;
		else in[q] = malloc(bytes + 1);
		if (q == c->rank) {
			if (in[q] != out && !(o->kind == BROADCAST && o->root != q)) memmove(in[q], out, bytes);
			continue;
		}
		if (o->kind != BROADCAST || o->root == c->rank) ts[k++] = transfer_of(o, 1, q, out, bytes);
		if (o->kind != BROADCAST || o->root == q) ts[k++] = transfer_of(o, 0, q, in[q], bytes);
	}
	exchange(c, ts, k);
	if (o->kind == ALLREDUCE || o->kind == REDUCESCATTER) {
		for (int q = 0; q < n && !c->abort; q++) {
			if (o->op == AVG) premultiply(o->dtype, in[q], o->count, n);
			if (q) combine(o->dtype, o->op, in[0], in[q], o->count);
		}
		if (!c->abort) memcpy(o->recv, in[0], bytes);
		for (int q = 0; q < n; q++) free(in[q]);
	}
	free(in);
	free(ts);
}

void points(op *o) {
	comm *c = o->c;
	int n = 0, k = 0;
	for (op *p = o; p; p = p->next) n++;
	transfer *ts = calloc(n, sizeof *ts);
	for (op *p = o; p; p = p->next) {
		if (p->root == c->rank) die("a rank that sends to itself");
		ts[k++] = transfer_of(p, p->kind == SEND, p->root, p->kind == SEND ? p->send : p->recv, p->count * width(p->dtype));
	}
	exchange(c, ts, n);
	free(ts);
}
