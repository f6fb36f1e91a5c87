#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "base/assert.h"

namespace ringbolt::link {

/// Bytes in a row that come in behind and leave in front; the memory is one piece and never grows. Not thread-safe.
class StreamBuffer {
 public:
  explicit StreamBuffer(size_t capacity)
      : capacity_(capacity), memory_(std::make_unique_for_overwrite<std::byte[]>(capacity)) {}

  std::span<const std::byte> bytes() const { return {memory_.get() + start_, end_ - start_}; }
  size_t size() const { return end_ - start_; }
  bool is_empty() const { return start_ == end_; }

  /// Where the next bytes may be written. Moves what is held to the front when that is no more than what has left since
  /// the last move, so that each byte is moved once at most on average; what bytes() gave is not valid any more.
  std::span<std::byte> room() {
    if (start_ != 0 && start_ >= size()) {
      std::memmove(memory_.get(), memory_.get() + start_, size());
      end_ -= start_;
      start_ = 0;
    }
    return {memory_.get() + end_, capacity_ - end_};
  }
  /// The first `count` bytes of room() are held from now on.
  void append(size_t count) {
    RINGBOLT_ASSERT(count <= capacity_ - end_);
    end_ += count;
  }
  /// The first `count` bytes leave; they stay readable until room() is called.
  void consume(size_t count) {
    RINGBOLT_ASSERT(count <= size());
    start_ += count;
  }
  /// All but the first `count` bytes go.
  void truncate(size_t count) {
    RINGBOLT_ASSERT(count <= size());
    end_ = start_ + count;
  }

 private:
  size_t capacity_;
  std::unique_ptr<std::byte[]> memory_;
  size_t start_ = 0;
  size_t end_ = 0;
};

}  // namespace ringbolt::link
