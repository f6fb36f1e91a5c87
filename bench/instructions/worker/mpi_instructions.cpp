// Instructions of Open MPI or MPICH, whichever this file was built with. Two processes: rank 0 counts, and runs under
// callgrind; see early_peer.h.
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "counter.h"
#include "early_peer.h"

namespace ringbolt::bench {
namespace {

constexpr uint64_t kWarmUp = 32;
constexpr int kTag = 7;

int rank() {
  int own = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  return own;
}

/// There and back.
void sends(InstructionCounter& counter, EarlyPeer& early_peer, uint64_t operations) {
  uint64_t word = 1;
  const int peer = 1 - rank();
  const auto send = [&] { MPI_Send(&word, sizeof word, MPI_BYTE, peer, kTag, MPI_COMM_WORLD); };
  const auto receive = [&] { MPI_Recv(&word, sizeof word, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); };
  for (uint64_t i = 0; i < kWarmUp + operations; ++i) {
    if (peer == 0) {
      receive();
      send();
      early_peer.meet();
    } else if (i < kWarmUp) {
      send();
      early_peer.meet();
      receive();
    } else {
      counter.measure(send);
      counter.report("send.sender", 1);
      early_peer.meet();
      counter.measure(receive);
      counter.report("send.receiver", 1);
    }
  }
}

template <int bytes>
void all_reduce(InstructionCounter& counter, EarlyPeer& early_peer, uint64_t operations) {
  constexpr int kElements = bytes / static_cast<int>(sizeof(float));
  const std::vector<float> in(kElements, 1);
  std::vector<float> out(kElements);
  early_peer.count(counter, bytes == 64 ? "all_reduce_64" : "all_reduce_4096", operations,
                   [&] { MPI_Allreduce(in.data(), out.data(), kElements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
}

void barrier(InstructionCounter& counter, EarlyPeer& early_peer, uint64_t operations) {
  early_peer.count(counter, "barrier", operations, [] { MPI_Barrier(MPI_COMM_WORLD); });
}

/// Rank 1 takes no part: it waits in a barrier for the end.
template <class Operation>
void one_sided(InstructionCounter& counter, const char* name, uint64_t operations, Operation operation) {
  MPI_Win window = MPI_WIN_NULL;
  void* memory = nullptr;
  MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    for (uint64_t i = 0; i < kWarmUp; ++i) {
      operation(window);
    }
    for (uint64_t i = 0; i < operations; ++i) {
      counter.measure([&] { operation(window); });
      counter.report(name, 1);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

void put(InstructionCounter& counter, uint64_t operations) {
  one_sided(counter, "write", operations, [word = uint64_t{1}](MPI_Win window) {
    MPI_Put(&word, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, window);
    MPI_Win_flush(1, window);
  });
}

void get(InstructionCounter& counter, uint64_t operations) {
  one_sided(counter, "read", operations, [word = uint64_t{0}](MPI_Win window) mutable {
    MPI_Get(&word, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, window);
    MPI_Win_flush(1, window);
  });
}

void fetch_add(InstructionCounter& counter, uint64_t operations) {
  one_sided(counter, "fetch_add", operations, [before = uint64_t{0}, one = uint64_t{1}](MPI_Win window) mutable {
    MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 1, 0, MPI_SUM, window);
    MPI_Win_flush(1, window);
  });
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) {
  using namespace ringbolt::bench;
  MPI_Init(&argc, &argv);
  try {
    if (rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) {  // its series are nobody's
      throw std::runtime_error("no /dev/null");
    }
    const Order order = parse_order(argc, argv);
    EarlyPeer early_peer(order.page, rank());
    const auto with_peer = [&](auto kind) -> Kind {
      return [&early_peer, kind](InstructionCounter& counter, uint64_t n) { kind(counter, early_peer, n); };
    };
    run_kinds(order, {{"send", with_peer(sends)},
                      {"all_reduce_64", with_peer(all_reduce<64>)},
                      {"all_reduce_4096", with_peer(all_reduce<4096>)},
                      {"barrier", with_peer(barrier)},
                      {"write", put},
                      {"read", get},
                      {"fetch_add", fetch_add}});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
}
