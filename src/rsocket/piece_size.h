#pragma once

#include <algorithm>
#include <cstdint>

// Hot path.

namespace ringbolt::rsocket {

/// How long the messages of one transfer are at most: the first ones short, so that the peer can begin to copy; each
/// twice the one before it. A value of the call.
class PieceSize {
 public:
  static constexpr uint32_t kFirstBytes = 8192;  ///< POLLOUT: such a one can go
  /// Longer ones gain little: the peer copies one while the next comes.
  static constexpr uint32_t kMostBytes = 65536;

  uint32_t bytes() const { return bytes_; }
  void grow() { bytes_ = std::min(2 * bytes_, kMostBytes); }

 private:
  uint32_t bytes_ = kFirstBytes;
};

}  // namespace ringbolt::rsocket
