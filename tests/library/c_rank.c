/* The C API as a C99 program meets it: every call once, with data that tell rank and place. Prints "ok", or what went
 * wrong. With "die" as its argument the last rank ends without a word, and the others shrink. */
#include <errno.h>
#include <ringbolt/ringbolt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kCount = 1000, kMost = 16, kTimeoutMs = 30000 };

static ringbolt_group* group;
static uint32_t self, n;

static void need(int holds, const char* what) {
  if (!holds) {
    printf("rank %u: %s: %s\n", self, what, ringbolt_error());
    fflush(stdout);
    _exit(1);
  }
}

static int32_t datum(uint32_t rank, uint32_t place) { return (int32_t)(rank * 100003 + place); }

static void fill(int32_t* data, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    data[i] = datum(self, i);
  }
}

static int is_sum(const int32_t* data, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    int32_t sum = 0;
    for (uint32_t rank = 0; rank < n; ++rank) {
      sum += datum(rank, first + i);
    }
    if (data[i] != sum) {
      return 0;
    }
  }
  return 1;
}

static int is_of(const int32_t* data, uint32_t rank, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (data[i] != datum(rank, first + i)) {
      return 0;
    }
  }
  return 1;
}

static int are_all(const int32_t* data) {
  for (uint32_t rank = 0; rank < n; ++rank) {
    if (!is_of(data + rank * kCount, rank, 0, kCount)) {
      return 0;
    }
  }
  return 1;
}

static int32_t in[kMost * kCount], out[kMost * kCount];

static void blocking_calls(void) {
  const uint32_t root = n - 1;
  need(!ringbolt_all_reduce(group, in, out, kCount, RINGBOLT_INT32, RINGBOLT_SUM, kTimeoutMs), "all_reduce");
  need(is_sum(out, 0, kCount), "all_reduce's data");
  need(!ringbolt_reduce_scatter(group, in, out, kCount, RINGBOLT_INT32, RINGBOLT_SUM, kTimeoutMs), "reduce_scatter");
  need(is_sum(out, self * kCount, kCount), "reduce_scatter's data");
  need(!ringbolt_all_gather(group, in, out, kCount, RINGBOLT_INT32, kTimeoutMs) && are_all(out), "all_gather");
  need(!ringbolt_reduce(group, in, out, kCount, RINGBOLT_INT32, RINGBOLT_SUM, root, kTimeoutMs), "reduce");
  need(self != root || is_sum(out, 0, kCount), "reduce's data");
  need(!ringbolt_gather(group, in, out, kCount, RINGBOLT_INT32, root, kTimeoutMs), "gather");
  need(self != root || are_all(out), "gather's data");
  need(!ringbolt_scatter(group, in, out, kCount, RINGBOLT_INT32, root, kTimeoutMs), "scatter");
  need(is_of(out, root, self * kCount, kCount), "scatter's data");
  need(!ringbolt_all_to_all(group, in, out, kCount, RINGBOLT_INT32, kTimeoutMs), "all_to_all");
  for (uint32_t from = 0; from < n; ++from) {
    need(is_of(out + from * kCount, from, self * kCount, kCount), "all_to_all's data");
  }
  memcpy(out, in, kCount * sizeof *in);
  need(!ringbolt_broadcast(group, out, kCount, RINGBOLT_INT32, root, kTimeoutMs), "broadcast");
  need(is_of(out, root, 0, kCount), "broadcast's data");
  need(!ringbolt_barrier(group, kTimeoutMs), "barrier");
}

/* Rank r has r + 1 elements for everybody, and of all_to_allv r + s for rank s. */
static void calls_with_counts(void) {
  size_t counts[kMost], sent[kMost], received[kMost];
  for (uint32_t rank = 0; rank < n; ++rank) {
    counts[rank] = rank + 1;
    sent[rank] = received[rank] = self + rank;
  }
  need(!ringbolt_all_gatherv(group, in, out, counts, RINGBOLT_INT32, kTimeoutMs), "all_gatherv");
  for (uint32_t rank = 0, at = 0; rank < n; at += ++rank) {
    need(is_of(out + at, rank, 0, rank + 1), "all_gatherv's data");
  }
  need(!ringbolt_all_to_allv(group, in, sent, out, received, RINGBOLT_INT32, kTimeoutMs), "all_to_allv");
  for (uint32_t from = 0, at = 0; from < n; at += self + from++) {
    uint32_t first = 0; /* where rank `from` begins with what it has for us */
    for (uint32_t to = 0; to < self; ++to) {
      first += from + to;
    }
    need(is_of(out + at, from, first, self + from), "all_to_allv's data");
  }
  ringbolt_request *gather, *exchange;
  static int32_t gathered[kMost * kCount], exchanged[kMost * kCount];
  need(!ringbolt_all_gatherv_start(group, in, gathered, counts, RINGBOLT_INT32, kTimeoutMs, &gather), "begin");
  need(!ringbolt_all_to_allv_start(group, in, sent, exchanged, received, RINGBOLT_INT32, kTimeoutMs, &exchange),
       "begin");
  need(!ringbolt_wait(exchange) && !ringbolt_wait(gather), "calls with counts that were begun");
  for (uint32_t rank = 0, at = 0; rank < n; at += ++rank) {
    need(is_of(gathered + at, rank, 0, rank + 1), "data of an all_gatherv that was begun");
  }
  need(memcmp(exchanged, out, self * sizeof *out) == 0, "data of an all_to_allv that was begun");
  need(ringbolt_all_gatherv(group, in, out, NULL, RINGBOLT_INT32, 0) == EINVAL, "all_gatherv without counts");
  need(ringbolt_all_reduce(group, in, out, 1, (ringbolt_type)(256 + RINGBOLT_INT32), RINGBOLT_SUM, 0) == EINVAL,
       "a type beyond a byte");
}

static void begun_calls(void) {
  static int32_t sums[kCount], got[kCount];
  ringbolt_request *reduce, *barrier, *send, *receive;
  need(!ringbolt_all_reduce_start(group, in, sums, kCount, RINGBOLT_INT32, RINGBOLT_SUM, kTimeoutMs, &reduce), "begin");
  need(!ringbolt_recv_start(group, got, kCount, RINGBOLT_INT32, (self + n - 1) % n, kTimeoutMs, &receive), "receive");
  need(!ringbolt_send_start(group, in, kCount, RINGBOLT_INT32, (self + 1) % n, kTimeoutMs, &send), "send");
  need(!ringbolt_barrier_start(group, kTimeoutMs, &barrier), "barrier");
  need(!ringbolt_wait(reduce) && is_sum(sums, 0, kCount), "a sum that was begun");
  need(!ringbolt_wait(send) && !ringbolt_wait(receive), "messages that were begun");
  need(is_of(got, (self + n - 1) % n, 0, kCount), "data of a message that was begun");
  while (!ringbolt_test(barrier)) {
    usleep(1000);
  }
  need(!ringbolt_wait(barrier), "a barrier that was begun");
  /* Nobody sends this one. */
  need(!ringbolt_recv_start(group, got, kCount, RINGBOLT_INT32, (self + 1) % n, kTimeoutMs, &receive), "receive");
  need(!ringbolt_test(receive), "not done yet");
  need(!ringbolt_cancel(receive) && ringbolt_wait(receive) == ECANCELED, "a call that was given up");
  need(ringbolt_wait(NULL) == EINVAL && ringbolt_cancel(NULL) == EINVAL, "no request");
  need(ringbolt_barrier_start(NULL, 0, &barrier) == EINVAL && ringbolt_barrier(NULL, 0) == EINVAL, "no group");
}

static void groups(void) {
  ringbolt_group* half;
  char text[4096];
  need(!ringbolt_split(group, (int)(self % 2), (int)self, &half), "split");
  need(ringbolt_size(half) == (n + 1 - self % 2) / 2 && ringbolt_rank(half) == self / 2, "who is in a half");
  need(!ringbolt_barrier(half, kTimeoutMs), "barrier of a half");
  ringbolt_leave(half);
  need(ringbolt_report(group, text, sizeof text) > 10 && strstr(text, "rank ") != NULL, "report");
  need(ringbolt_report(group, NULL, 0) > 10 && ringbolt_report(group, text, 5) > 10 && strlen(text) == 4, "its length");
}

static void survivors(void) {
  ringbolt_group* left;
  int32_t one = 1, sum = 0;
  if (self == n - 1) {
    _exit(0);
  }
  need(ringbolt_barrier(group, kTimeoutMs) != 0, "a barrier without the last rank");
  need(!ringbolt_shrink(group, &left), "shrink");
  need(ringbolt_size(left) == n - 1 && ringbolt_rank(left) == self, "who is left");
  need(!ringbolt_all_reduce(left, &one, &sum, 1, RINGBOLT_INT32, RINGBOLT_SUM, kTimeoutMs), "all_reduce of those");
  need(sum == (int32_t)n - 1, "its sum");
  ringbolt_leave(left);
}

int main(int argc, char** argv) {
  need(!ringbolt_join(&group), "join");
  self = ringbolt_rank(group);
  n = ringbolt_size(group);
  need(n >= 2 && n <= kMost, "2 to 16 ranks");
  fill(in, n * kCount);
  if (argc > 1 && strcmp(argv[1], "die") == 0) {
    survivors();
  } else {
    blocking_calls();
    calls_with_counts();
    begun_calls();
    groups();
  }
  ringbolt_leave(group);
  puts("ok");
  return 0;
}
