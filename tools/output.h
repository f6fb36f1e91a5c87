#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringbolt::tools {

/// Cuts a stream of bytes into lines and puts a prefix before each. Not thread-safe.
class LineSplitter {
 public:
  /// A longer line is handed on in pieces of this size, each as a line.
  static constexpr size_t kMaxLineBytes = size_t{1} << 20U;

  explicit LineSplitter(std::string prefix) : prefix_(std::move(prefix)) {}

  /// Appends the whole lines that `bytes` completes to `out`, each with prefix and newline.
  void feed(std::string_view bytes, std::string& out);
  /// At the end of the stream: appends what was begun, as a line.
  void finish(std::string& out);

 private:
  std::string prefix_;
  std::string begun_;
};

/// Bytes on their way to one of our own outputs, written as poll() allows, so that a slow reader of ours never blocks
/// us. Not thread-safe.
class OutputQueue {
 public:
  /// Beyond this much the children's outputs are not read until it has drained: they then wait, as on a full pipe.
  static constexpr size_t kFullBytes = size_t{1} << 20U;

  explicit OutputQueue(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  std::string& bytes() { return bytes_; }
  bool is_empty() const { return bytes_.empty(); }
  bool is_full() const { return bytes_.size() >= kFullBytes; }
  /// Writes once, as much as surely fits after poll() said POLLOUT. False when nobody reads any more, or it can't
  /// be written for another reason: error() is the errno.
  bool write_some();
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
  std::string bytes_;
};

}  // namespace ringbolt::tools
