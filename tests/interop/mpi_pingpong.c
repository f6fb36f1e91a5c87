/* A ping-pong between two MPI ranks that checks every byte: blocking, non-blocking, bidirectional and one-sided.
 * Data depends on rank, round and position, so that a shifted, stale or mirrored message is noticed. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 20, kWindow = 8, kMaxBytes = 1 << 22 };

static unsigned char pattern(int rank, int round, size_t position) {
  uint32_t mixed = (uint32_t)position * 2654435761u + (uint32_t)round * 40503u + (uint32_t)rank * 97u;
  return (unsigned char)(mixed >> 13);
}

static void fill(unsigned char *bytes, size_t length, int rank, int round) {
  for (size_t position = 0; position < length; ++position) bytes[position] = pattern(rank, round, position);
}

static void check(const unsigned char *bytes, size_t length, int rank, int round, const char *what) {
  for (size_t position = 0; position < length; ++position) {
    if (bytes[position] == pattern(rank, round, position)) continue;
    fprintf(stderr, "%s: %zu bytes, round %d: byte %zu from rank %d is %u, expected %u\n", what, length, round, position,
            rank, bytes[position], pattern(rank, round, position));
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

static void ping_pong(unsigned char *out, unsigned char *in, size_t length, int rank) {
  int peer = 1 - rank;
  double started = MPI_Wtime();
  for (int round = 0; round < kRounds; ++round) {
    fill(out, length, rank, round);
    if (rank == 0) {
      MPI_Send(out, (int)length, MPI_BYTE, peer, round, MPI_COMM_WORLD);
      MPI_Recv(in, (int)length, MPI_BYTE, peer, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, (int)length, MPI_BYTE, peer, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, (int)length, MPI_BYTE, peer, round, MPI_COMM_WORLD);
    }
    check(in, length, peer, round, "ping-pong");
  }
  /* The figure includes filling and checking: it shows that rounds advance, not how fast the device is. */
  if (rank == 0) printf("ping-pong %8zu bytes %10.2f us\n", length, (MPI_Wtime() - started) * 1e6 / (2 * kRounds));
}

static void both_ways(unsigned char *out, unsigned char *in, size_t length, int rank) {
  MPI_Request requests[2 * kWindow];
  int peer = 1 - rank;
  for (int slot = 0; slot < kWindow; ++slot) {
    fill(out + (size_t)slot * length, length, rank, slot);
    MPI_Irecv(in + (size_t)slot * length, (int)length, MPI_BYTE, peer, 1000 + slot, MPI_COMM_WORLD, &requests[slot]);
  }
  for (int slot = 0; slot < kWindow; ++slot)
    MPI_Isend(out + (size_t)slot * length, (int)length, MPI_BYTE, peer, 1000 + slot, MPI_COMM_WORLD,
              &requests[kWindow + slot]);
  MPI_Waitall(2 * kWindow, requests, MPI_STATUSES_IGNORE);
  for (int slot = 0; slot < kWindow; ++slot) check(in + (size_t)slot * length, length, peer, slot, "both ways");
}

static void one_sided(unsigned char *out, unsigned char *in, size_t length, int rank) {
  MPI_Win window;
  int peer = 1 - rank;
  fill(out, length, rank, 7);
  MPI_Win_create(in, (MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(out, (int)length, MPI_BYTE, peer, 0, (int)length, MPI_BYTE, window);
  MPI_Win_fence(0, window);
  check(in, length, peer, 7, "put");
  MPI_Win_free(&window);
}

int main(int argc, char **argv) {
  static const size_t kSizes[] = {1, 8, 1024, 8192, 8193, 65536, 1 << 20, kMaxBytes};
  int rank = 0;
  int size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    fprintf(stderr, "needs 2 ranks, has %d\n", size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  unsigned char *out = malloc((size_t)kMaxBytes);
  unsigned char *in = malloc((size_t)kMaxBytes);
  if (out == NULL || in == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (size_t index = 0; index < sizeof kSizes / sizeof kSizes[0]; ++index) {
    ping_pong(out, in, kSizes[index], rank);
    if (kSizes[index] * kWindow <= kMaxBytes) both_ways(out, in, kSizes[index], rank);
    one_sided(out, in, kSizes[index], rank);
  }
  long sum = rank + 1;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (sum != 3) MPI_Abort(MPI_COMM_WORLD, 4);
  if (rank == 0) printf("every byte checked\n");
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
