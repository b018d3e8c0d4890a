/* mpi_allreduce.c -- MPI's all-reduce of 64 MiB between its ranks: rank 0 prints the median seconds of one. Built and run by
 * scripts/bench/allreduce.sh where mpicc is installed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, FLOATS = 16 << 20 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank;
    double seconds[STEPS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *x = malloc(FLOATS * sizeof *x);
    memset(x, 0, FLOATS * sizeof *x);
    for (int i = 0; i < STEPS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, x, FLOATS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        seconds[i] = MPI_Wtime() - start;
    }
    qsort(seconds + 2, STEPS - 2, sizeof *seconds, ascending);
    if (!rank)
        printf("%.6f\n", seconds[2 + (STEPS - 2) / 2]);
    free(x);
    MPI_Finalize();
    return 0;
}
