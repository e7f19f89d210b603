/* SPDX-License-Identifier: BSD-3-Clause */
/* What an MPI asks of the network below it, with every byte checked: wildcards, probes, collectives,
 * one-sided access, split communicators. 2 to 8 ranks; mpi_test.sh starts it.
 *
 *   mpi_test [LARGEST-SIZE [ROUNDS]]   bytes, 4 MiB unless said; 1 round
 */
/* MPI_STATUSES_IGNORE of MPICH is an address, which gcc takes for a short array. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "rank %d: line %d: %s\n", rank, __LINE__, #condition);        \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                 \
        }                                                                                 \
    } while (0)

static unsigned char pattern(int source, int tag, size_t index) {
    return (unsigned char)(source * 31 + tag * 7 + index + (index >> 11));
}
static void fill(unsigned char* buffer, size_t size, int source, int tag) {
    for (size_t i = 0; i < size; ++i)
        buffer[i] = pattern(source, tag, i);
}
static void check(const unsigned char* buffer, size_t size, int source, int tag) {
    for (size_t i = 0; i < size; ++i)
        CHECK(buffer[i] == pattern(source, tag, i));
}

/* Each rank to its right neighbour, sizes from nothing up. */
static void ring(size_t largest) {
    unsigned char* out = malloc(largest + 1);
    unsigned char* in = malloc(largest + 1);
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    for (size_t size = 0; size <= largest; size = size == 0 ? 1 : size * 4) {
        const int tag = (int)(size % 1000);
        fill(out, size, rank, tag);
        memset(in, 0xee, size + 1);
        MPI_Status status;
        MPI_Sendrecv(out, (int)size, MPI_BYTE, right, tag, in, (int)size, MPI_BYTE, left, tag,
                     MPI_COMM_WORLD, &status);
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == (int)size);
        check(in, size, left, tag);
        CHECK(in[size] == 0xee);
    }
    free(out);
    free(in);
}

/* Rank 0 takes messages of all others, whoever sends first, with whatever tag. */
static void wildcards(void) {
    enum { kMessages = 50, kSize = 3000 };
    unsigned char buffer[kSize];
    if (rank == 0) {
        int* next = calloc((size_t)ranks, sizeof(int));
        for (int left = (ranks - 1) * kMessages; left > 0; --left) {
            MPI_Status status;
            MPI_Recv(buffer, kSize, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            int count = 0;
            MPI_Get_count(&status, MPI_BYTE, &count);
            /* In order from each sender. */
            CHECK(status.MPI_TAG == next[status.MPI_SOURCE]++);
            CHECK(count == status.MPI_TAG * 59 % kSize);
            check(buffer, (size_t)count, status.MPI_SOURCE, status.MPI_TAG);
        }
        free(next);
    } else {
        for (int tag = 0; tag < kMessages; ++tag) {
            const int size = tag * 59 % kSize;
            fill(buffer, (size_t)size, rank, tag);
            MPI_Send(buffer, size, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
        }
    }
}

/* Later messages first; many posted at once. */
static void out_of_order(void) {
    enum { kMessages = 300 };
    static int values[kMessages];
    MPI_Request requests[kMessages];
    if (rank == 0) {
        for (int i = 0; i < kMessages; ++i) {
            values[i] = i * i;
            MPI_Isend(&values[i], 1, MPI_INT, ranks - 1, i, MPI_COMM_WORLD, &requests[i]);
        }
    } else if (rank == ranks - 1) {
        for (int i = 0; i < kMessages; ++i)
            MPI_Irecv(&values[i], 1, MPI_INT, 0, kMessages - 1 - i, MPI_COMM_WORLD, &requests[i]);
    } else {
        return;
    }
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; rank != 0 && i < kMessages; ++i)
        CHECK(values[i] == (kMessages - 1 - i) * (kMessages - 1 - i));
}

static void probes(void) {
    enum { kTag = 77 };
    for (int size = 1; size <= 1 << 20; size *= 16) {
        if (rank == 0) {
            unsigned char* out = malloc((size_t)size);
            fill(out, (size_t)size, 0, kTag);
            for (int to = 1; to < ranks; ++to)
                for (int i = 0; i < 2; ++i)
                    MPI_Send(out, size, MPI_BYTE, to, kTag, MPI_COMM_WORLD);
            free(out);
            continue;
        }
        for (int i = 0; i < 2; ++i) {
            MPI_Status status;
            MPI_Message message;
            int count = 0, found = 0;
            if (i == 0) {
                MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            } else {
                while (!found)
                    MPI_Improbe(0, kTag, MPI_COMM_WORLD, &found, &message, &status);
            }
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK(count == size && status.MPI_SOURCE == 0 && status.MPI_TAG == kTag);
            unsigned char* in = malloc((size_t)size);
            if (i == 0)
                MPI_Recv(in, size, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                MPI_Mrecv(in, size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
            check(in, (size_t)size, 0, kTag);
            free(in);
        }
    }
}

static void collectives(MPI_Comm comm) {
    int me, all;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    for (int count = 1; count <= 100000; count *= 10) {
        int64_t* in = malloc((size_t)count * sizeof(*in));
        int64_t* out = malloc((size_t)count * (size_t)all * sizeof(*out));
        for (int i = 0; i < count; ++i)
            in[i] = me + i;
        MPI_Allreduce(in, out, count, MPI_INT64_T, MPI_SUM, comm);
        for (int i = 0; i < count; ++i)
            CHECK(out[i] == (int64_t)all * i + (int64_t)all * (all - 1) / 2);
        MPI_Allgather(in, count, MPI_INT64_T, out, count, MPI_INT64_T, comm);
        for (int r = 0; r < all; ++r)
            CHECK(out[(size_t)r * (size_t)count + (size_t)count - 1] == r + count - 1);
        if (me == all - 1)
            for (int i = 0; i < count; ++i)
                in[i] = 1000 + i;
        MPI_Bcast(in, count, MPI_INT64_T, all - 1, comm);
        for (int i = 0; i < count; ++i)
            CHECK(in[i] == 1000 + i);
        free(in);
        free(out);
    }
    int* send = malloc((size_t)all * sizeof(int));
    int* receive = malloc((size_t)all * sizeof(int));
    for (int r = 0; r < all; ++r)
        send[r] = me * 100 + r;
    MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, comm);
    for (int r = 0; r < all; ++r)
        CHECK(receive[r] == r * 100 + me);
    MPI_Barrier(comm);
    free(send);
    free(receive);
}

static void split(void) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    collectives(half);
    MPI_Comm_free(&half);
}

static void one_sided(void) {
    enum { kCount = 2000 };
    int* memory;
    MPI_Win window;
    MPI_Win_allocate((MPI_Aint)(kCount * ranks * (int)sizeof(int)), sizeof(int), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    static int out[kCount];
    for (int i = 0; i < kCount; ++i)
        out[i] = rank * 10000 + i;
    for (int to = 0; to < ranks; ++to)
        MPI_Put(out, kCount, MPI_INT, to, (MPI_Aint)rank * kCount, kCount, MPI_INT, window);
    MPI_Win_fence(0, window);
    for (int from = 0; from < ranks; ++from)
        for (int i = 0; i < kCount; ++i)
            CHECK(memory[from * kCount + i] == from * 10000 + i);
    MPI_Win_fence(0, window);
    static int in[kCount];
    const int right = (rank + 1) % ranks;
    MPI_Get(in, kCount, MPI_INT, right, 0, kCount, MPI_INT, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < kCount; ++i)
        CHECK(in[i] == i);
    const int one = 1;
    if (rank == 0)
        memory[0] = 0;
    MPI_Win_fence(0, window);
    for (int i = 0; i < 20; ++i)
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK(rank != 0 || memory[0] == 20 * ranks);
    MPI_Win_free(&window);
}

static void step(const char* name) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s\n", name);
        fflush(stdout);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const size_t largest = argc > 1 ? strtoull(argv[1], NULL, 0) : 4u << 20;
    const long rounds = argc > 2 ? strtol(argv[2], NULL, 0) : 1;
    for (long round = 0; round < rounds; ++round) {
        ring(largest);
        step("point to point");
        wildcards();
        step("wildcards");
        out_of_order();
        step("out of order");
        probes();
        step("probes");
        collectives(MPI_COMM_WORLD);
        step("collectives");
        split();
        step("split communicators");
        one_sided();
        step("one-sided");
    }
    MPI_Finalize();
    if (rank == 0)
        printf("all right with %d ranks, up to %zu bytes\n", ranks, largest);
    return 0;
}
