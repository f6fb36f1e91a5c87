// Instructions of short collectives of ours, by the library's C interface, on two nodes of a cluster. Two processes:
// rank 0 counts, under callgrind, and rank 1 is there before it. Each call is a series of its own: see counting.py.
#include <ringbolt/ringbolt.h>

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <vector>

#include "counter.h"
#include "early_peer.h"

namespace ringbolt::bench {
namespace {

constexpr uint64_t kTimeoutMs = 60'000;

void check(int error) {
  if (error != 0) [[unlikely]] {
    throw std::runtime_error(ringbolt_error());
  }
}

/// This rank of two, and the page that both share.
class Rank {
 public:
  explicit Rank(const std::string& page) {
    check(ringbolt_join(&group_));
    early_peer_.emplace(page, static_cast<int>(ringbolt_rank(group_)));
  }
  ~Rank() { ringbolt_leave(group_); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void all_reduce(InstructionCounter& counter, const char* name, size_t bytes, uint64_t operations) {
    const std::vector<float> in(bytes / sizeof(float), 1);
    std::vector<float> out(in.size());
    early_peer_->count(counter, name, operations, [&] {
      check(ringbolt_all_reduce(group_, in.data(), out.data(), in.size(), RINGBOLT_FLOAT32, RINGBOLT_SUM, kTimeoutMs));
    });
  }
  void barrier(InstructionCounter& counter, uint64_t operations) {
    early_peer_->count(counter, "barrier", operations, [&] { check(ringbolt_barrier(group_, kTimeoutMs)); });
  }

 private:
  ringbolt_group* group_ = nullptr;
  std::optional<EarlyPeer> early_peer_;
};

int run(int argc, char** argv) try {
  const Order order = parse_order(argc, argv);
  Rank rank(order.page);
  run_kinds(order,
            {{"all_reduce_64", [&](auto& counter, auto n) { rank.all_reduce(counter, "all_reduce_64", 64, n); }},
             {"all_reduce_4096", [&](auto& counter, auto n) { rank.all_reduce(counter, "all_reduce_4096", 4096, n); }},
             {"barrier", [&](auto& counter, auto n) { rank.barrier(counter, n); }}});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 2;
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::run(argc, argv); }
