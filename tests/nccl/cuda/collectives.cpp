// Real NCCL over the plugin: several ranks on one GPU, each a process with a host id of its own, so that NCCL sends
// everything over the network. Checks every element of every collective.
//
//   collectives --ranks N [--nodes N] [--bytes MAX] [--kill]
//
// What NCCL loads is said by its own variables (NCCL_NET_PLUGIN). Exit codes: 0 all right, 1 something is wrong, 77 no
// GPU.
#include <cuda_runtime.h>
#include <nccl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

int own_rank = -1;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s\n", own_rank, what.c_str());
  std::exit(1);
}

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess) {
    fail(std::string(what) + ": " + cudaGetErrorString(result));
  }
}

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) {
    fail(std::string(what) + ": " + ncclGetErrorString(result));
  }
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Element `i` of rank `rank`: a small whole number, so that sums are exact in any order, of rank and position.
float element(int rank, size_t i) { return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 31 + i / 1009) % 97); }

/// A rank with its communicator and buffers for the largest call.
struct Rank {
  int rank = 0;
  int n_ranks = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* input = nullptr;
  float* output = nullptr;
  size_t n_most = 0;  ///< elements of each buffer

  void fill(size_t n) const {
    std::vector<float> host(n);
    for (size_t i = 0; i < n; ++i) {
      host[i] = element(rank, i);
    }
    check(cudaMemcpy(input, host.data(), n * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemset(output, 0xee, n_most * sizeof(float)), "cudaMemset");
  }
  std::vector<float> result(size_t n) const {
    std::vector<float> host(n);
    check(cudaMemcpy(host.data(), output, n * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  }
};

struct Collective {
  const char* name;
  /// Elements of input and output that a call with `n` elements a rank has.
  std::function<std::array<size_t, 2>(size_t n, size_t n_ranks)> shape;
  std::function<ncclResult_t(const Rank& rank, size_t n)> call;
  std::function<float(const Rank& rank, size_t n, size_t i)> expected;
  int only_rank = -1;  ///< whose output counts; -1: everybody's
};

float sum_of(const Rank& rank, size_t i) {
  float sum = 0;
  for (int other = 0; other < rank.n_ranks; ++other) {
    sum += element(other, i);
  }
  return sum;
}

ncclResult_t all_to_all(const Rank& rank, size_t n) {
  ncclGroupStart();
  for (int other = 0; other < rank.n_ranks; ++other) {
    const auto at = static_cast<size_t>(other) * n;
    ncclSend(rank.input + at, n, ncclFloat, other, rank.comm, rank.stream);
    ncclRecv(rank.output + at, n, ncclFloat, other, rank.comm, rank.stream);
  }
  return ncclGroupEnd();
}

std::vector<Collective> collectives() {
  const auto same = [](size_t n, size_t) { return std::array{n, n}; };
  const auto gathered = [](size_t n, size_t ranks) { return std::array{n, n * ranks}; };
  const auto scattered = [](size_t n, size_t ranks) { return std::array{n * ranks, n}; };
  const auto both = [](size_t n, size_t ranks) { return std::array{n * ranks, n * ranks}; };
  return {
      {"all_reduce", same,
       [](const Rank& r, size_t n) {
         return ncclAllReduce(r.input, r.output, n, ncclFloat, ncclSum, r.comm, r.stream);
       },
       [](const Rank& r, size_t, size_t i) { return sum_of(r, i); }},
      {"all_gather", gathered,
       [](const Rank& r, size_t n) { return ncclAllGather(r.input, r.output, n, ncclFloat, r.comm, r.stream); },
       [](const Rank&, size_t n, size_t i) { return element(static_cast<int>(i / n), i % n); }},
      {"reduce_scatter", scattered,
       [](const Rank& r, size_t n) {
         return ncclReduceScatter(r.input, r.output, n, ncclFloat, ncclSum, r.comm, r.stream);
       },
       [](const Rank& r, size_t n, size_t i) { return sum_of(r, static_cast<size_t>(r.rank) * n + i); }},
      {"broadcast", same,
       [](const Rank& r, size_t n) { return ncclBroadcast(r.input, r.output, n, ncclFloat, 1, r.comm, r.stream); },
       [](const Rank&, size_t, size_t i) { return element(1, i); }},
      {"reduce", same,
       [](const Rank& r, size_t n) {
         return ncclReduce(r.input, r.output, n, ncclFloat, ncclSum, 0, r.comm, r.stream);
       },
       [](const Rank& r, size_t, size_t i) { return sum_of(r, i); }, 0},
      {"all_to_all", both, all_to_all,
       [](const Rank& r, size_t n, size_t i) {
         return element(static_cast<int>(i / n), static_cast<size_t>(r.rank) * n + i % n);
       }},
  };
}

/// Runs one call twice, the second time for its duration, and checks each element.
void run(const Collective& one, const Rank& rank, size_t n) {
  const auto [n_in, n_out] = one.shape(n, static_cast<size_t>(rank.n_ranks));
  if (std::max(n_in, n_out) > rank.n_most) {
    return;
  }
  rank.fill(n_in);
  check(one.call(rank, n), one.name);
  check(cudaStreamSynchronize(rank.stream), one.name);
  const Clock::time_point begin = Clock::now();
  check(one.call(rank, n), one.name);
  check(cudaStreamSynchronize(rank.stream), one.name);
  const double seconds = seconds_since(begin);
  if (one.only_rank >= 0 && one.only_rank != rank.rank) {
    return;
  }
  const std::vector<float> result = rank.result(n_out);
  for (size_t i = 0; i < n_out; ++i) {
    if (const float wanted = one.expected(rank, n, i); result[i] != wanted) {
      fail(std::string(one.name) + " of " + std::to_string(n) + " elements: element " + std::to_string(i) + " is " +
           std::to_string(result[i]) + ", not " + std::to_string(wanted));
    }
  }
  if (rank.rank == 0) {
    std::printf("%-14s %12zu bytes %12.1f us\n", one.name, n * sizeof(float), seconds * 1e6);
    std::fflush(stdout);
  }
}

/// A part of the ranks, with a communicator made of the first one.
void run_split(const Rank& rank) {
  Rank part = rank;
  check(ncclCommSplit(rank.comm, rank.rank % 2, rank.rank, &part.comm, nullptr), "ncclCommSplit");
  check(ncclCommUserRank(part.comm, &part.rank), "ncclCommUserRank");
  check(ncclCommCount(part.comm, &part.n_ranks), "ncclCommCount");
  run(collectives()[0], part, 10'000);
  check(ncclCommDestroy(part.comm), "ncclCommDestroy");
}

/// The last rank is killed while all are in a call: how soon do the others learn of it?
void run_kill(const Rank& rank) {
  rank.fill(1'000'000);
  const auto all_reduce = [&] {
    return ncclAllReduce(rank.input, rank.output, 1'000'000, ncclFloat, ncclSum, rank.comm, rank.stream);
  };
  check(all_reduce(), "all_reduce");  // which makes the connections
  check(cudaStreamSynchronize(rank.stream), "all_reduce");
  if (rank.rank == rank.n_ranks - 1) {
    ::raise(SIGKILL);
  }
  const Clock::time_point begin = Clock::now();
  ncclResult_t state = all_reduce();
  while (state == ncclSuccess && seconds_since(begin) < 20) {
    check(ncclCommGetAsyncError(rank.comm, &state), "ncclCommGetAsyncError");
    ::usleep(1000);
  }
  std::printf("rank %d: after %.3f s: %d (%s)\n", rank.rank, seconds_since(begin), static_cast<int>(state),
              ncclGetErrorString(state));
  const bool is_right = state == ncclRemoteError && seconds_since(begin) < 2;
  check(ncclCommAbort(rank.comm), "ncclCommAbort");
  std::exit(is_right ? 0 : 1);
}

void run_rank(int rank, int n_ranks, const ncclUniqueId& id, size_t n_most, bool is_killing) {
  own_rank = rank;
  Rank self;
  self.rank = rank;
  self.n_ranks = n_ranks;
  self.n_most = n_most;
  check(cudaSetDevice(0), "cudaSetDevice");
  check(cudaStreamCreate(&self.stream), "cudaStreamCreate");
  check(cudaMalloc(&self.input, n_most * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&self.output, n_most * sizeof(float)), "cudaMalloc");
  check(ncclCommInitRank(&self.comm, n_ranks, id, rank), "ncclCommInitRank");
  if (is_killing) {
    run_kill(self);
  }
  for (const Collective& one : collectives()) {
    for (size_t n = 2; n <= n_most; n *= 8) {
      run(one, self, n);
      run(one, self, n + 1);
    }
  }
  run_split(self);
  check(ncclCommDestroy(self.comm), "ncclCommDestroy");
  std::exit(0);
}

int n_gpus_in_a_child() {
  // Not in this process: ranks can't use what it has opened.
  const pid_t child = ::fork();
  if (child == 0) {
    int n = 0;
    ::_exit(cudaGetDeviceCount(&n) == cudaSuccess ? n : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  int n_ranks = 2;
  int n_nodes = 0;
  size_t most_bytes = size_t{64} << 20U;
  bool is_killing = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--kill") {
      is_killing = true;
    } else if (i + 1 < argc && word == "--ranks") {
      n_ranks = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--nodes") {
      n_nodes = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--bytes") {
      most_bytes = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "collectives: what is %s?\n", argv[i]);
      return 2;
    }
  }
  if (n_gpus_in_a_child() == 0) {
    std::puts("skip: there is no GPU");
    return 77;
  }
  std::array<int, 2> pipe_of_id{};
  if (::pipe(pipe_of_id.data()) != 0) {
    return 1;
  }
  std::vector<pid_t> children;
  for (int rank = 0; rank < n_ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("NCCL_HOSTID", ("ringbolt-test-" + std::to_string(rank)).c_str(), 1);
      if (n_nodes > 0) {
        ::setenv("RINGBOLT_NODE", std::to_string(rank % n_nodes).c_str(), 1);
      }
      ncclUniqueId id;
      if (rank == 0) {
        check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        for (int other = 1; other < n_ranks; ++other) {
          if (::write(pipe_of_id[1], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) {
            fail("write");
          }
        }
      } else if (::read(pipe_of_id[0], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) {
        fail("read");
      }
      run_rank(rank, n_ranks, id, most_bytes / sizeof(float), is_killing);
    }
    children.push_back(child);
  }
  int n_failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool is_meant = is_killing && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    n_failed += is_meant || (WIFEXITED(status) && WEXITSTATUS(status) == 0) ? 0 : 1;
  }
  std::printf("%d of %d ranks failed\n", n_failed, n_ranks);
  return n_failed == 0 ? 0 : 1;
}
