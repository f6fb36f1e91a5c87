#pragma once

#include <string>

#include "counter.h"
#include "turn_page.h"

namespace ringbolt::bench {

/// Keeps rank 1 ahead of rank 0, which counts: what rank 0's call would wait for is there when it looks. Both map one
/// page; nothing of it is counted. Not thread-safe.
class EarlyPeer {
 public:
  /// Throws std::runtime_error.
  EarlyPeer(const std::string& path, int rank) : page_(map_turn_page(path)), rank_(rank) {}

  /// Rank 1 calls it before a call that rank 0 makes, too, or behind one that rank 0 counts on. Rank 0: returns a while
  /// after rank 1 has called it as often. Spins: who sleeps finds things in another state than who calls and calls.
  void meet();

  /// Counts a call that both ranks make. `operations` are counted in handfuls, each of which is a series: counting.py
  /// takes those in which nothing was waited for. What callgrind writes between two of them takes milliseconds, after
  /// which a rank may have gone to sleep, so that the first calls of a handful do not count.
  template <class Call>
  void count(InstructionCounter& counter, const char* name, uint64_t operations, Call call) {
    constexpr uint64_t kHandful = 16;
    for (uint64_t done = 0; done < operations; done += kHandful) {
      for (uint64_t i = 0; i < kHandful; ++i) {
        meet();
        call();
      }
      for (uint64_t i = 0; i < kHandful; ++i) {
        meet();
        counter.measure(call);
      }
      counter.report(name, kHandful);
    }
  }

 private:
  TurnPage& page_;
  int rank_;
  uint64_t meetings_ = 0;
};

}  // namespace ringbolt::bench
