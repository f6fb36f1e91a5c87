#pragma once

#include <string>

#include "turn_page.h"

namespace ringbolt::bench {

/// Keeps rank 1 ahead of rank 0, which counts: what rank 0's call would wait for is there before it begins. Both map
/// one page; nothing of it is counted. Not thread-safe.
class EarlyPeer {
 public:
  /// Throws std::runtime_error.
  EarlyPeer(const std::string& path, int rank) : page_(map_turn_page(path)), rank_(rank) {}

  /// Rank 1: the next thing that it does is what rank 0 counts on. Rank 0: returns a while after rank 1 has said so.
  void meet();

 private:
  TurnPage& page_;
  int rank_;
  uint64_t meetings_ = 0;
};

}  // namespace ringbolt::bench
