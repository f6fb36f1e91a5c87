#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <infiniband/verbs.h>

#include "link/lane.h"

namespace ringbolt::device {

/// A message that came before its receive.
struct ParkedMessage {
  std::vector<std::byte> bytes;
  link::SlotHeader header;             ///< its flags and its immediate
  ibv_wc_opcode opcode = IBV_WC_RECV;  ///< of the receive that it will complete
  uint32_t length = 0;                 ///< as that completion says it
};

/// Where messages wait at their receiver that met no receive, as many as there is room for: first in, first out. One at
/// a time comes in. Not thread-safe.
class Parking {
 public:
  struct Bounds {
    uint32_t messages = 0;
    uint32_t bytes = 0;  ///< of all of them
  };
  explicit Parking(Bounds bounds) : bounds_(bounds) {}

  /// A message of `total` bytes begins (0: nobody knows yet). False: there is no room for it. One that never ended is
  /// forgotten.
  bool begin(uint32_t total) {
    incoming_.reset();
    if (parked_.size() >= bounds_.messages || total > bounds_.bytes - bytes_) {
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
  bool finish(const link::SlotHeader& header, ibv_wc_opcode opcode, uint32_t length) noexcept try {
    if (!incoming_) {
      return false;
    }
    incoming_->header = header;
    incoming_->opcode = opcode;
    incoming_->length = length;
    const auto size = static_cast<uint32_t>(incoming_->bytes.size());
    parked_.push_back(std::move(*incoming_));
    bytes_ += size;
    incoming_.reset();
    return true;
  } catch (const std::bad_alloc&) {
    incoming_.reset();
    return false;
  }

  bool is_empty() const { return parked_.empty(); }
  /// The oldest; there is one.
  ParkedMessage take() {
    ParkedMessage message = std::move(parked_.front());
    parked_.pop_front();
    bytes_ -= static_cast<uint32_t>(message.bytes.size());
    return message;
  }
  void clear() {
    parked_.clear();
    incoming_.reset();
    bytes_ = 0;
  }

 private:
  Bounds bounds_;
  std::deque<ParkedMessage> parked_;
  std::optional<ParkedMessage> incoming_;
  uint32_t bytes_ = 0;  // of those that are parked
};

}  // namespace ringbolt::device
