#pragma once

#include <cstdint>
#include <string>

#include "progress_line.h"

namespace ringbolt::tools::verify {

/// How a run goes: what both ends have verified, and the longest time in which nothing moved here. Not thread-safe.
class Progress {
 public:
  explicit Progress(tools::Progress& out) : out_(out) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A step begins; what was before it is no gap.
  void begin(const std::string& title);
  /// Something came at `now_ns`.
  void moved(uint64_t now_ns);
  void count(uint64_t messages, uint64_t bytes) {
    messages_ += messages;
    bytes_ += bytes;
  }
  /// What the other end has counted so far: a sender sees nothing itself.
  void set_theirs(uint64_t messages, uint64_t bytes) {
    their_messages_ = messages;
    their_bytes_ = bytes;
  }
  void set_errors(uint64_t errors) { errors_ = errors; }
  /// Shows it, if it is time to.
  void tick(uint64_t now_ns);

  uint64_t slowest_gap_ns() const { return slowest_ns_; }
  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t last_moved_ns() const { return moved_ns_; }

 private:
  tools::Progress& out_;
  std::string title_ = {};
  uint64_t moved_ns_ = 0;
  uint64_t slowest_ns_ = 0;
  uint64_t messages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t their_messages_ = 0;
  uint64_t their_bytes_ = 0;
  uint64_t errors_ = 0;
};

}  // namespace ringbolt::tools::verify
