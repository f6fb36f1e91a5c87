#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace ringbolt::device {

/// How long SENDs of private memory get to this end of a lane: through the lane in chunks, both ends copying at once,
/// or in one copy that this end makes itself, a system call. Which is faster depends on the processors, on where the
/// two ends run and on the length, so each way is tried now and then, and the faster one is wished for. Not
/// thread-safe. Under the lock for receiving; what it wishes for goes to the peer as a word in the lane.
class SendWays {
 public:
  enum class Way : uint8_t { chunks, pulled };
  static constexpr uint32_t kLeastBytes = 16U << 10U;  ///< shorter ones go through the lane

  /// Lengths with a way of their own are those between two powers of two. `bytes`: from kLeastBytes on.
  static constexpr uint32_t class_of(uint32_t bytes) {
    return std::min(static_cast<uint32_t>(std::bit_width(bytes / kLeastBytes)) - 1, kClasses - 1);
  }

  /// A message of so many bytes came that way, and took that long since it was sent, or since the one before it was
  /// whole.
  void note(Way way, uint32_t bytes, uint64_t took_ns) {
    const uint32_t index = class_of(bytes);
    Class& one = classes_[index];
    if (way != one.way) {
      return;  // it was under way when another one was wished for
    }
    one.costs[one.left % kTrial] = cost_of(bytes, took_ns);
    if (--one.left == 0) {
      end_round(one);
      wishes_ = (wishes_ & ~(1U << index)) | (one.way == Way::pulled ? 1U << index : 0U);
    }
  }

  /// A bit for each class whose messages are to be pulled.
  uint32_t wishes() const { return wishes_; }

 private:
  static constexpr uint32_t kClasses = 7;  ///< the last one has all from 1 MiB on
  // In messages: a trial of the other way, odd for the sake of the median, and a round of the better one, so long that
  // trials of a far slower way cost little.
  static constexpr uint16_t kTrial = 7;
  static constexpr uint16_t kRound = 256;

  struct Class {
    std::array<uint32_t, 2> median{UINT32_MAX, UINT32_MAX};  ///< of each way, of the last messages of its last round
    std::array<uint32_t, kTrial> costs{};                    ///< of the last messages of this round
    uint16_t left = kTrial;                                  ///< messages of this round
    Way way = Way::chunks;
    bool is_trial = false;
  };

  /// In ns for each MiB.
  static uint32_t cost_of(uint32_t bytes, uint64_t took_ns) {
    constexpr uint64_t kMost = uint64_t{1} << 32U;  // what takes 4 s tells nothing
    return static_cast<uint32_t>(std::min<uint64_t>((std::min(took_ns, kMost) << 20U) / bytes, UINT32_MAX - 1));
  }
  static void end_round(Class& one) {
    const auto middle = one.costs.begin() + kTrial / 2;
    std::nth_element(one.costs.begin(), middle, one.costs.end());
    one.median[static_cast<size_t>(one.way)] = *middle;
    const bool ends_trial = one.is_trial;
    one.is_trial = !ends_trial;
    if (ends_trial) {
      // What the sender's copy costs besides, its time and its cache, is not seen here: an eighth, in round trips.
      const uint64_t chunks = one.median[0];
      one.way = chunks + chunks / 8 <= one.median[1] ? Way::chunks : Way::pulled;
      one.left = kRound;
    } else {
      one.way = one.way == Way::chunks ? Way::pulled : Way::chunks;
      one.left = kTrial;
    }
  }

  std::array<Class, kClasses> classes_;
  uint32_t wishes_ = 0;
};

}  // namespace ringbolt::device
