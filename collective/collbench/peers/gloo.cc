// All-reduces of gloo, for collbench --peers:
//   gloo RANKS BYTES ITERS SECONDS FOLDER INTERFACE [RANK]
// It is one rank, or starts all itself; they meet in the folder and use TCP on the
// interface, which is all that gloo has on Linux.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <memory>

#include "peer.h"

struct ranks {
	std::shared_ptr<gloo::rendezvous::Context> context;
	uint32_t tag = 0; // of the next collective
};

static void all_reduce(void *self, float *x, size_t n) {
	auto r = static_cast<ranks *>(self);
	gloo::AllreduceOptions o(r->context);
	o.setOutput(x, n);
	o.setReduceFunction([](void *to, const void *a, const void *b, size_t k) {
		gloo::sum<float>(static_cast<float *>(to), static_cast<const float *>(a), static_cast<const float *>(b), k);
	});
	o.setTag(r->tag++ & 0xffff);
	gloo::allreduce(o);
}

static void barrier(void *self) {
	auto r = static_cast<ranks *>(self);
	gloo::BarrierOptions o(r->context);
	o.setTag(r->tag++ & 0xffff);
	gloo::barrier(o);
}

static void broadcast(void *self, int *x) {
	auto r = static_cast<ranks *>(self);
	gloo::BroadcastOptions o(r->context);
	o.setOutput(x, 1);
	o.setRoot(0);
	o.setTag(r->tag++ & 0xffff);
	gloo::broadcast(o);
}

// run is a rank's life: its exit code.
static int run(int rank, int size, char **argv) try {
	gloo::transport::tcp::attr on;
	on.iface = argv[6];
	auto device = gloo::transport::tcp::CreateDevice(on);
	gloo::rendezvous::FileStore store(argv[5]);
	ranks r;
	r.context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	r.context->connectFullMesh(store, device);
	group g = {&r, rank, size, all_reduce, barrier, broadcast};
	bool right = measure(g, strtoul(argv[2], nullptr, 10), atoi(argv[3]), atof(argv[4]));
	barrier(&r); // who leaves first breaks the others' last broadcast
	fflush(stdout);
	return right ? 0 : 1;
} catch (const std::exception &e) {
	fprintf(stderr, "gloo, rank %d: %s\n", rank, e.what());
	return 1;
}

int main(int argc, char **argv) {
	int size = argc == 7 || argc == 8 ? atoi(argv[1]) : 0;
	if (size < 1) {
		fprintf(stderr, "usage: gloo RANKS BYTES ITERS SECONDS FOLDER INTERFACE [RANK]\n");
		return 2;
	}
	if (argc == 8)
		return run(atoi(argv[7]), size, argv);
	for (int rank = 0; rank < size; rank++) {
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(run(rank, size, argv));
		}
		if (pid < 0) {
			perror("fork"); // the ranks there are wait for it, and end with this process
			return 1;
		}
	}
	int code = 0, status;
	while (wait(&status) > 0)
		code = status != 0 ? 1 : code;
	return code;
}
