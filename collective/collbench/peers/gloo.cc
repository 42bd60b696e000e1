// All-reduces of gloo, for collbench --peers:  gloo RANKS BYTES ITERS SECONDS
// It starts its ranks itself; they meet in a folder and use TCP on loopback, which
// is all that gloo has on Linux.
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
#include <filesystem>
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
static int run(int rank, int size, const std::string &dir, char **argv) try {
	gloo::transport::tcp::attr on;
	on.iface = "lo";
	auto device = gloo::transport::tcp::CreateDevice(on);
	gloo::rendezvous::FileStore store(dir);
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
	char dir[] = "/tmp/collbench-gloo-XXXXXX";
	int size = argc == 5 ? atoi(argv[1]) : 0;
	if (size < 1) {
		fprintf(stderr, "usage: gloo RANKS BYTES ITERS SECONDS\n");
		return 2;
	}
	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	for (int rank = 0; rank < size; rank++) {
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(run(rank, size, dir, argv));
		}
		if (pid < 0) {
			perror("fork"); // the ranks there are wait for it, and end with this process
			return 1;
		}
	}
	int code = 0, status;
	while (wait(&status) > 0)
		code = status != 0 ? 1 : code;
	std::filesystem::remove_all(dir);
	return code;
}
