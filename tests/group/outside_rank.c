/* What C has beside one function per call, from outside of the library: options, an exchange of the program's own,
 * calls as structs, explain, relays, the progress descriptor. Runs as one rank per node, in a folder that all ranks
 * share (its argument). Prints "ok", or what went wrong. */
#include <errno.h>
#include <poll.h>
#include <ringbolt/ringbolt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kCount = 1000, kMost = 8, kBegun = 3, kPatienceMs = 60000 };

static const char* folder;
static uint32_t self, n;
static ringbolt_group* group;

static void need(int holds, const char* what) {
  if (!holds) {
    printf("rank %u: %s: %s\n", self, what, ringbolt_error());
    fflush(stdout);
    _exit(1);
  }
}

static float datum(uint32_t rank, uint32_t place) { return (float)(rank * 100 + place % 17); }

/* Files of the folder, each whole as soon as it is there. */
static int gather_by_files(void* context, const void* mine, void* all, size_t length_bytes) {
  char hidden[256], shown[256];
  ++*(int*)context;
  snprintf(hidden, sizeof hidden, "%s/hidden.%u", folder, self);
  snprintf(shown, sizeof shown, "%s/shown.%u", folder, self);
  FILE* file = fopen(hidden, "wb");
  if (file == NULL || fwrite(mine, 1, length_bytes, file) != length_bytes || fclose(file) != 0 ||
      rename(hidden, shown) != 0) {
    return EIO;
  }
  for (uint32_t rank = 0; rank < n; ++rank) {
    snprintf(shown, sizeof shown, "%s/shown.%u", folder, rank);
    for (int waited_ms = 0; (file = fopen(shown, "rb")) == NULL; ++waited_ms) {
      if (waited_ms > kPatienceMs) {
        return ETIMEDOUT;
      }
      usleep(1000);
    }
    const size_t got = fread((char*)all + rank * length_bytes, 1, length_bytes, file);
    fclose(file);
    if (got != length_bytes) {
      return EIO;
    }
  }
  return 0;
}

static void join(void) {
  const char* const nothing[] = {NULL};
  const char* const senseless[] = {"RANK", NULL};
  ringbolt_options* options = NULL;
  int n_exchanges = 0;
  need(ringbolt_version() >= RINGBOLT_VERSION && RINGBOLT_VERSION > 0, "an older library than its header");
  need(!ringbolt_options_create(&options), "options");
  need(ringbolt_options_set_environment(options, senseless) == EINVAL, "a variable without a value");
  need(!ringbolt_options_set_environment(options, nothing), "no environment");
  need(ringbolt_join_with(options, &group) == EINVAL && strstr(ringbolt_error(), "RINGBOLT_RANK"), "nothing to go by");
  need(!ringbolt_options_set_rank(options, self, n), "rank");
  need(ringbolt_join_with(options, &group) == EINVAL && strstr(ringbolt_error(), "find rank 0"), "no place to meet");
  need(ringbolt_options_set_meeting(options, "no host", 4000) == EINVAL, "a host that is none");
  need(ringbolt_options_set_checksums(options, RINGBOLT_CHECKSUMS_UNKNOWN) == EINVAL, "checksums that are none");
  need(!ringbolt_options_set_exchange(options, gather_by_files, &n_exchanges), "exchange");
  need(!ringbolt_options_set_group(options, "outside"), "name");
  need(!ringbolt_options_set_checksums(options, RINGBOLT_CHECKSUMS_EVERY), "checksums");
  need(!ringbolt_options_set_measuring(options, 0), "measuring");
  need(!ringbolt_options_set_timeout(options, kPatienceMs), "timeout");
  need(!ringbolt_options_set_join_timeout(options, kPatienceMs), "join timeout");
  need(!ringbolt_options_set_verbs(options, getenv("RINGBOLT_VERBS")), "verbs");
  need(!ringbolt_join_with(options, &group), "join");
  ringbolt_options_destroy(options);
  need(n_exchanges == 1, "exchanges");
  need(ringbolt_rank(group) == self && ringbolt_size(group) == n, "who this is");
}

static float in[kMost * kCount], out[kMost * kCount];

static ringbolt_call call_of(ringbolt_operation operation) {
  ringbolt_call call;
  memset(&call, 0, sizeof call);
  call.struct_size = sizeof call;
  call.operation = operation;
  call.type = RINGBOLT_FLOAT32;
  call.in = in;
  call.out = out;
  call.count = kCount;
  return call;
}

static int is_sum(const float* data) {
  for (uint32_t i = 0; i < kCount; ++i) {
    float sum = 0;
    for (uint32_t rank = 0; rank < n; ++rank) {
      sum += datum(rank, i);
    }
    if (data[i] != sum) {
      return 0;
    }
  }
  return 1;
}

static void calls(void) {
  ringbolt_call call = call_of(RINGBOLT_ALL_REDUCE);
  need(!ringbolt_run(group, &call) && is_sum(out), "all_reduce");
  call.flags = RINGBOLT_ANY_ORDER;
  call.algorithm = "direct";
  call.timeout_ms = kPatienceMs;
  need(!ringbolt_run(group, &call) && is_sum(out), "all_reduce by an algorithm, in any order");
  call.algorithm = "magic";
  need(ringbolt_run(group, &call) == EINVAL && strstr(ringbolt_error(), "magic"), "an algorithm that there is not");
  size_t counts[kMost];
  for (uint32_t rank = 0; rank < n; ++rank) {
    counts[rank] = rank + 1;
  }
  call = call_of(RINGBOLT_ALL_GATHERV);
  call.counts = counts;
  call.n_counts = n;
  need(!ringbolt_run(group, &call), "all_gatherv");
  for (uint32_t rank = 0, at = 0; rank < n; at += ++rank) {
    need(out[at + rank] == datum(rank, rank), "all_gatherv's data");
  }
  call.n_counts = n - 1;
  need(ringbolt_run(group, &call) == EINVAL && strstr(ringbolt_error(), "counts"), "a count too few");
  call = call_of(RINGBOLT_BARRIER);
  need(ringbolt_run(NULL, &call) == EINVAL && ringbolt_run(group, NULL) == EINVAL, "no group, no call");
  need(!ringbolt_run(group, &call), "barrier");
}

static void words(void) {
  char text[4096];
  uint32_t relays[kMost];
  size_t n_relays = 99;
  need(ringbolt_explain(group, "all_reduce", kCount, RINGBOLT_FLOAT32, text, sizeof text) > 20, "explain");
  need(strstr(text, "direct") != NULL && strstr(text, "nobody has measured") != NULL, text);
  need(ringbolt_explain(group, "magic", 1, RINGBOLT_FLOAT32, text, sizeof text) > 5 && strstr(text, "magic"), "magic");
  need(!ringbolt_relays(group, n - 1, relays, kMost, &n_relays), "relays");
  need(n_relays == (self + 1 < n ? n - 2 - self : 0), "their number on a line");
  need(n_relays == 0 || relays[0] == self + 1, "the first one");
  need(ringbolt_relays(group, n, relays, kMost, &n_relays) == ERANGE, "relays to no rank");
}

/* An event loop, with calls as its only events. */
static void events(void) {
  static float sums[kBegun][kCount];
  ringbolt_request* under_way[kBegun];
  struct pollfd event = {-1, POLLIN, 0};
  need(!ringbolt_progress_fd(group, &event.fd) && event.fd > 2, "progress descriptor");
  for (int i = 0; i < kBegun; ++i) {
    ringbolt_call call = call_of(RINGBOLT_ALL_REDUCE);
    call.out = sums[i];
    need(!ringbolt_start(group, &call, &under_way[i]), "begin");
  }
  for (int n_left = kBegun; n_left > 0;) {
    uint64_t n_ends;
    need(poll(&event, 1, kPatienceMs) == 1, "no event although calls are under way");
    need(read(event.fd, &n_ends, sizeof n_ends) == sizeof n_ends, "read the event");
    for (int i = 0; i < kBegun; ++i) {
      if (under_way[i] != NULL && ringbolt_test(under_way[i])) {
        need(!ringbolt_wait(under_way[i]) && is_sum(sums[i]), "a call that has ended");
        under_way[i] = NULL;
        --n_left;
      }
    }
  }
  /* Another rank's abort is an event, too. */
  uint64_t n_ends;
  (void)!read(event.fd, &n_ends, sizeof n_ends);
  need(!ringbolt_barrier(group, kPatienceMs), "barrier");
  if (self == 0) {
    need(!ringbolt_abort(group, "enough"), "abort");
  }
  need(poll(&event, 1, kPatienceMs) == 1, "no event although the group has broken");
  need(ringbolt_barrier(group, kPatienceMs) == ECANCELED && strstr(ringbolt_error(), "enough"), "an aborted group");
}

int main(int argc, char** argv) {
  const char* node = getenv("RINGBOLT_NODE");
  const char* nodes = getenv("RINGBOLT_NODES");
  need(argc == 2 && node != NULL && nodes != NULL, "ringbolt run -- outside_rank_c FOLDER");
  folder = argv[1];
  self = (uint32_t)atoi(node);
  n = (uint32_t)atoi(nodes);
  need(n >= 2 && n <= kMost, "2 to 8 ranks");
  for (uint32_t i = 0; i < kMost * kCount; ++i) {
    in[i] = datum(self, i);
  }
  join();
  calls();
  words();
  events();
  ringbolt_leave(group);
  puts("ok");
  return 0;
}
