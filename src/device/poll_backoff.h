// Hot path.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringbolt::device {

/// What a poll that finds nothing does besides: gives its core away now and then, looks at timers, looks at sends that
/// nobody waits for. Counted in such polls, of some 80 ns. Under the lock of the completion queue.
class PollBackoff {
 public:
  /// What is to be done behind an empty poll.
  struct Step {
    bool gives_core_away;
    bool looks_at_timers;
  };
  /// Another poll has found nothing.
  Step note_empty() {
    ++empty_polls_;
    const bool shares_core = patience_ == kLeastPollsBeforeYield;
    const bool gives_core_away = empty_polls_ >= patience_ && (shares_core || empty_polls_ % kPollsBetweenYields == 0);
    return {gives_core_away, gives_core_away || empty_polls_ % kPollsBetweenChecks == 0};
  }
  /// A poll has found something: if that came only after the core was given away, the peer needs this core.
  void note_found() {
    if (empty_polls_ > patience_) {
      patience_ = std::max(patience_ / 2, kLeastPollsBeforeYield);
    } else if (empty_polls_ != 0) {
      patience_ = std::min(patience_ * 2, kMostPollsBeforeYield);
    }
    empty_polls_ = 0;
  }
  /// Whether the poll that is under way looks at sends, too, that nobody waits for: each look brings a cache line that
  /// the peer has just written, and what arrives meanwhile is seen that much later.
  bool looks_at_all_sends() const { return empty_polls_ % kPollsBetweenLooks == kPollsBetweenLooks - 1; }
  /// Whether timers, which a poll is to look at, were not looked at just before. A poller that gives its core away may
  /// be gone for milliseconds each time, so that polls tell nothing of time. True: they are looked at as of `now_ns`.
  bool is_check_due(uint64_t now_ns) {
    if (now_ns - checked_ns_ < kNsBetweenChecks) {
      return false;
    }
    checked_ns_ = now_ns;
    return true;
  }

  static constexpr uint32_t kPollsBetweenChecks = 256;  ///< of timers and of peers that sleep
  // Timers of queue pairs are of milliseconds: this is often enough, and seldom beside what a poll costs.
  static constexpr uint64_t kNsBetweenChecks = 50'000;
  static constexpr uint32_t kPollsBetweenYields = 8;  ///< once the core is given away now and then
  static constexpr uint32_t kPollsBetweenLooks = 16;
  /// Polls before the core is given away, at first and within these bounds: the most are some 20 us.
  static constexpr uint32_t kFirstPollsBeforeYield = 64;
  static constexpr uint32_t kMostPollsBeforeYield = 256;
  static constexpr uint32_t kLeastPollsBeforeYield = 8;

 private:
  uint32_t empty_polls_ = 0;  // since the last that found something
  uint32_t patience_ = kFirstPollsBeforeYield;
  uint64_t checked_ns_ = 0;  // when timers were last looked at
};

}  // namespace ringbolt::device
