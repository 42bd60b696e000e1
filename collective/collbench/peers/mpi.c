// All-reduces of MPI, for collbench --peers:  mpirun -np RANKS mpi BYTES ITERS SECONDS
#include <mpi.h>

#include "peer.h"

static void all_reduce(void *self, float *x, size_t n) {
	(void)self;
	MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(void *self) {
	(void)self;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(void *self, int *x) {
	(void)self;
	MPI_Bcast(x, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
	struct group g = {NULL, 0, 0, all_reduce, barrier, broadcast};
	if (argc != 4) {
		fprintf(stderr, "usage: mpirun -np RANKS mpi BYTES ITERS SECONDS\n");
		return 2;
	}
	MPI_Init(&argc, &argv); // an error of MPI's ends all ranks
	MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g.ranks);
	int right = measure(g, strtoul(argv[1], NULL, 10), atoi(argv[2]), atof(argv[3]));
	fflush(stdout);
	MPI_Finalize();
	return right ? 0 : 1;
}
