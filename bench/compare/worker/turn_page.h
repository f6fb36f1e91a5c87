#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace ringbolt::bench {

/// One page shared by the ranks of one peer, beside whatever the peer itself offers: it starts the ranks of a block
/// together and hands the turn over in one-sided tests, alike for every peer and outside of the timed part.
struct TurnPage {
  static constexpr unsigned kMostRanks = 8;  // of those that say when they finished

  struct alignas(64) Moment {
    std::atomic<uint64_t> ticks;  ///< writer: one rank
  };

  alignas(64) std::atomic<uint64_t> arrivals;  ///< writers: all ranks, in arrive()
  alignas(64) std::atomic<uint64_t> turn;      ///< writer: the rank whose turn it is
  alignas(64) std::atomic<uint64_t> stamp;     ///< writer: rank 0; for the cache-line probe
  alignas(64) std::atomic<uint64_t> echo;      ///< writer: rank 1
  alignas(64) std::atomic<uint64_t> meetings;  ///< writers: all ranks; for StartLine
  alignas(64) std::atomic<uint64_t> start;     ///< writer: the last rank to come
  Moment finished[2][kMostRanks];              ///< of calls with even and odd numbers

  /// Waits until `ranks` callers have arrived `round` times each (round counts from 1). Yields the core while waiting.
  void arrive(unsigned ranks, uint64_t round);
  /// Spins until the turn is `value`.
  void wait_for_turn(uint64_t value) const;
};

/// Maps the page at `path` for the rest of the process's life. Throws std::runtime_error.
TurnPage& map_turn_page(const std::string& path);

}  // namespace ringbolt::bench
