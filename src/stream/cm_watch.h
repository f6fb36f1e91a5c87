#pragma once

#include <cstdint>

namespace ringbolt::stream {

/// When a stream looks at its connection manager, which is a call into the system, and how long it waits for its word.
/// Times are of base::now_ns(). Not thread-safe: under the stream's lock.
class CmWatch {
 public:
  /// Between two looks of a connected stream to which nothing comes.
  /// In nanoseconds, as all here: a look costs some microseconds.
  static constexpr uint64_t kPaceNs = 50'000;
  /// Requests were flushed: the connection manager says why within this time, or nobody does.
  static constexpr uint64_t kBrokenGraceNs = 1'000'000'000;

  explicit CmWatch(uint64_t opening_until_ns) : opening_until_ns_(opening_until_ns) {}

  /// True: the caller looks. Always while the stream `is_waiting` for its word: it opens, or is broken.
  bool is_look_due(uint64_t now_ns, bool is_waiting, bool is_idle) {
    if (!is_waiting && (!is_idle || now_ns - looked_at_ns_ < kPaceNs)) {
      return false;
    }
    looked_at_ns_ = now_ns;
    return true;
  }
  /// The next look is due, if the stream is idle.
  void look_soon() { looked_at_ns_ = 0; }

  uint64_t opening_until_ns() const { return opening_until_ns_; }
  bool has_opening_timed_out(uint64_t now_ns) const { return now_ns >= opening_until_ns_; }
  /// Requests of a stream were flushed, and this look has not told why. Whether that has been so for too long.
  bool is_broken_for_good(uint64_t now_ns) {
    broken_since_ns_ = broken_since_ns_ == 0 ? now_ns : broken_since_ns_;
    return now_ns - broken_since_ns_ >= kBrokenGraceNs;
  }

 private:
  const uint64_t opening_until_ns_;
  uint64_t looked_at_ns_ = 0;
  uint64_t broken_since_ns_ = 0;  // 0: they were not
};

}  // namespace ringbolt::stream
