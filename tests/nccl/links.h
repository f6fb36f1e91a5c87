#pragma once

#include <vector>

#include "rank.h"

namespace ringbolt::test {

/// One channel between this rank and a peer: a comm to it and one from it.
struct Link {
  int peer = 0;
  int channel = 0;
  void* listener = nullptr;
  Handle own{};
  Handle theirs{};  ///< connect may keep its state in it
  void* send = nullptr;
  void* receive = nullptr;
};

/// How this rank goes about it.
struct Manner {
  double connect_after_s = 0;
  double accept_after_s = 0;
  double limit_s = 20;
};

/// All other ranks.
std::vector<int> peers_of(const Rank& rank);

/// A collective call of this rank and `peers`, which call it alike: every ordered pair of them at once, by `channels`
/// channels. Throws Failure.
std::vector<Link> open_links(Rank& rank, const std::vector<int>& peers, int channels, const Manner& manner = {});

/// The parts of it, for cases that do something in between. After `exchange_handles`, `own` and `theirs` are filled.
std::vector<Link> listen_for(Rank& rank, const std::vector<int>& peers, int channels);
void exchange_handles(Rank& rank, std::vector<Link>& links);
void establish(Rank& rank, std::vector<Link>& links, const Manner& manner);

/// Throws Failure when a call fails or takes a second.
void close_links(Rank& rank, std::vector<Link>& links);

/// Throws Failure unless `call()` succeeds within a second, as closing must in whatever state. What this thread waited
/// for a processor does not count.
template <typename Function>
void promptly(const char* what, Function&& call) {
  const uint64_t waited = waited_for_processor_ns();
  const uint64_t begin = now_ns();
  expect(call(), what);
  const double excused = static_cast<double>(waited_for_processor_ns() - waited) * 1e-9;
  if (const double took = seconds_since(begin) - excused; took > 1.0) {
    throw Late(std::string(what) + " took " + std::to_string(took) + " s");
  }
}

/// Lets others have the processor, as NCCL's threads do when nothing moved.
void yield_now();
void sleep_s(double seconds);

}  // namespace ringbolt::test
