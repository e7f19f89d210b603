/* SPDX-License-Identifier: BSD-3-Clause */
/* Ping-pong and streams between two MPI ranks; scripts/bench-mpi.sh compiles and starts it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 5, kPings = 2000, kWindow = 64, kWindows = 200, kLarge = 1 << 20, kLargeCount = 64 };

static int rank;

static double ping_pong(int count) {
    char byte[8] = {0};
    const double start = MPI_Wtime();
    for (int i = 0; i < count; ++i) {
        if (rank == 0) {
            MPI_Send(byte, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(byte, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(byte, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(byte, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) * 1e6 / (2.0 * count);
}

/* Seconds for `windows` windows of messages, each answered. */
static double stream(char* buffer, int size, int window, int windows) {
    MPI_Request requests[kWindow];
    char answer = 0;
    const double start = MPI_Wtime();
    for (int w = 0; w < windows; ++w) {
        for (int i = 0; i < window; ++i) {
            if (rank == 0)
                MPI_Isend(buffer + (size_t)i * (size_t)size, size, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(buffer + (size_t)i * (size_t)size, size, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(&answer, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(&answer, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
static double median(double* values) {
    qsort(values, kRounds, sizeof(*values), ascending);
    return values[kRounds / 2];
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char* buffer = calloc(16, kLarge);
    double latency[kRounds], rate[kRounds], bandwidth[kRounds];
    ping_pong(kPings / 10);
    for (int i = 0; i < kRounds; ++i) {
        latency[i] = ping_pong(kPings);
        rate[i] = kWindow * kWindows / stream(buffer, 8, kWindow, kWindows);
        bandwidth[i] = (double)kLarge * kLargeCount / 1e6 / stream(buffer, kLarge, 16, kLargeCount / 16);
    }
    if (rank == 0)
        printf("%-14s %12.2f %14.3f %12.0f\n", argc > 1 ? argv[1] : "", median(latency), median(rate) / 1e6,
               median(bandwidth));
    MPI_Finalize();
    free(buffer);
    return 0;
}
