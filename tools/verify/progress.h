#pragma once

#include <cstdint>
#include <string>

namespace ringbolt::tools::verify {

/// How a run goes, on standard error: on a terminal one line that is written again each second, else a line now and
/// then. Also keeps the longest time in which nothing moved. Not thread-safe.
class Progress {
 public:
  enum class Style {
    kNone,
    kTerminal,
    kLines,
    kForParent,  ///< lines that begin with kMark, for the command that started this process
  };
  static constexpr const char* kMark = "ringbolt-verify progress: ";

  Progress(Style style, double period_s) : style_(style), period_ns_(static_cast<uint64_t>(period_s * 1e9)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// A step begins; what was before it is no gap.
  void begin(const std::string& title);
  /// Something came at `now_ns`.
  void moved(uint64_t now_ns);
  void count(uint64_t messages, uint64_t bytes) {
    messages_ += messages;
    bytes_ += bytes;
  }
  void set_errors(uint64_t errors) { errors_ = errors; }
  /// Prints, if it is time to.
  void tick(uint64_t now_ns);

  uint64_t slowest_gap_ns() const { return slowest_ns_; }
  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t last_moved_ns() const { return moved_ns_; }

 private:
  Style style_;
  uint64_t period_ns_;
  std::string title_ = {};
  uint64_t begin_ns_ = 0;
  uint64_t printed_ns_ = 0;
  uint64_t moved_ns_ = 0;
  uint64_t slowest_ns_ = 0;
  uint64_t messages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t errors_ = 0;
  bool has_line_ = false;
};

}  // namespace ringbolt::tools::verify
