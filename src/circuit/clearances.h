#pragma once

// Hot path: begin(), hear() and of_latest() do not allocate, lock or wait.

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>

#include "circuit/clear_to_send.h"
#include "circuit/receive_queue.h"

namespace ringbolt::circuit {

/// The buffer that a message belongs to, as its sender has been told.
struct Target {
  uint32_t clearance = 0;
  bool is_direct = false;  ///< false: the message goes by frames
  uint64_t capacity = 0;
  uint64_t address = 0;
  uint32_t n_rails = 0;
  std::array<uint16_t, kMostRails> rails{};
  std::array<uint32_t, kMostRails> keys{};

  std::optional<uint32_t> key_of(uint16_t rail) const {
    for (uint32_t i = 0; i < n_rails; ++i) {
      if (rails[i] == rail) {
        return keys[i];
      }
    }
    return std::nullopt;
  }
};

/// What a sender knows of the other end's receives, and to which of them its messages belong: by ReceiveQueue's rule,
/// as the receiver has it. All messages begin here in order, also those that go by frames, for they fill receives,
/// too. Not thread-safe. Memory is bounded by kMostUnmatched and kMostReceives, whatever the receiver says. Of the
/// send circuit, under its lock.
class Clearances {
 public:
  /// Messages that have begun and whose receives are unknown, at most: more than can be on their way. Beyond, matching
  /// rests until the next base.
  static constexpr uint32_t kMostUnmatched = 1024;

  /// The next message. Of each message once, in the order of their numbers, before its first frame or WRITE.
  void begin(int32_t tag);
  /// Where the one that has begun last goes; none: that is not known yet. A reference to a member: the next begin()
  /// or hear() changes it.
  const std::optional<Target>& of_latest() const { return latest_; }
  /// False: it can't be. What was heard before, on a rail that has failed since, is passed over.
  [[nodiscard]] bool hear(const ClearToSend& frame);
  /// The number of the receive to be heard of next: FrameHeader::heard has its lowest bits.
  uint32_t next_clearance() const { return next_clearance_; }

 private:
  struct Where {
    uint32_t n_rails = 0;
    std::array<uint16_t, kMostRails> rails{};
    std::array<ClearedPart, kMostParts> parts{};
  };
  [[nodiscard]] bool start_from(uint32_t message);
  [[nodiscard]] bool add(const ClearToSend& frame, const ClearedReceive& cleared);
  bool match(uint32_t message);
  int32_t& tag_of(uint32_t message) { return tags_[message % kMostUnmatched]; }

  ReceiveQueue queue_;
  std::array<Where, kMostReceives> where_;  // [number of the receive % kMostReceives]
  std::array<int32_t, kMostUnmatched> tags_{};
  std::bitset<kMostUnmatched> is_matched_;
  uint32_t first_unmatched_ = 0;  // all before it are matched
  uint32_t next_message_ = 0;
  uint32_t next_clearance_ = 0;
  bool is_lost_ = true;  // until there is a base
  std::optional<Target> latest_;
};

}  // namespace ringbolt::circuit
