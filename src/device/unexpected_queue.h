#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "device/received_message.h"

namespace ringbolt::device {

/// A message that came before its receive, with its bytes, if it carries any.
struct UnexpectedMessage {
  std::vector<std::byte> bytes;
  ReceivedMessage message;
};

/// Messages that came before their receives (MPI calls them unexpected), as many as there is room for: first in, first
/// out. One at a time comes in. Not thread-safe.
/// Under the lock for receiving of the queue pair whose messages it keeps. Allocates for each message: only profiles
/// that have it so keep any.
class UnexpectedQueue {
 public:
  struct Bounds {
    uint32_t messages = 0;
    uint32_t bytes = 0;  ///< of all of them
  };
  explicit UnexpectedQueue(Bounds bounds) : bounds_(bounds) {}

  /// A message of `total` bytes begins (0: nobody knows yet). False: there is no room for it. One that never ended is
  /// forgotten.
  bool begin(uint32_t total) {
    incoming_.reset();
    if (waiting_.size() >= bounds_.messages || total > bounds_.bytes - bytes_) {
      return false;
    }
    incoming_.emplace();
    return true;
  }
  /// More of it, from byte `offset` on. If there is no room for it after all, or no memory, it is forgotten.
  void append(uint32_t offset, std::span<const std::byte> more) noexcept try {
    const bool fits = incoming_ && offset <= incoming_->bytes.size() && offset + more.size() <= bounds_.bytes - bytes_;
    if (!fits) {
      incoming_.reset();
      return;
    }
    incoming_->bytes.resize(offset);
    incoming_->bytes.insert(incoming_->bytes.end(), more.begin(), more.end());
  } catch (const std::bad_alloc&) {
    incoming_.reset();
  }
  /// The message is whole. False: there was no room for it.
  bool finish(const ReceivedMessage& message) noexcept try {
    if (!incoming_) {
      return false;
    }
    incoming_->message = message;
    const auto size = static_cast<uint32_t>(incoming_->bytes.size());
    waiting_.push_back(std::move(*incoming_));
    bytes_ += size;
    incoming_.reset();
    return true;
  } catch (const std::bad_alloc&) {
    incoming_.reset();
    return false;
  }

  bool is_empty() const { return waiting_.empty(); }
  /// The oldest; there is one.
  UnexpectedMessage take() {
    UnexpectedMessage oldest = std::move(waiting_.front());
    waiting_.pop_front();
    bytes_ -= static_cast<uint32_t>(oldest.bytes.size());
    return oldest;
  }
  void clear() {
    waiting_.clear();
    incoming_.reset();
    bytes_ = 0;
  }

 private:
  Bounds bounds_;
  std::deque<UnexpectedMessage> waiting_;
  std::optional<UnexpectedMessage> incoming_;
  uint32_t bytes_ = 0;  // of those that wait
};

}  // namespace ringbolt::device
