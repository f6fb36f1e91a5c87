#pragma once

// Hot path: no allocation.

#include <cstdint>
#include <vector>

#include "wire/syndrome.h"

namespace ringbolt::transport {

/// An answer that is to be sent.
struct Response {
  enum Kind : uint8_t { acknowledge, selective, nak, read, atomic };
  Kind kind = acknowledge;
  uint8_t syndrome = wire::kAckUnlimited;
  uint32_t psn = 0;  ///< READ: of the first packet that is still to be sent
  uint32_t msn = 0;
  // READ
  uint32_t packets = 0;  ///< of the whole answer
  uint32_t sent = 0;
  uint32_t length = 0;  ///< bytes that are still to be sent
  uint32_t key = 0;
  uint64_t address = 0;
  uint64_t value = 0;  ///< atomic: what was there before; selective: the first missing sequence
};

/// Answers in the order of their requests. ACKs and NAKs merge, so there is at most one between two answers with data,
/// and the bound on those bounds the queue. Not thread-safe.
/// Part of a responder, and used as it is.
class ResponseQueue {
 public:
  /// `answers`: READs and atomics at once. Throws std::bad_alloc.
  explicit ResponseQueue(uint32_t answers);

  bool is_empty() const { return head_ == tail_; }
  /// All that waits is to say that everything has come.
  bool is_acknowledgement() const {
    const Response& first = items_[head_ & mask_];
    return tail_ - head_ == 1 && first.kind == Response::acknowledge && wire::is_ack(first.syndrome);
  }
  /// Room for one more READ or atomic.
  bool has_room() const { return answers_ < most_answers_; }
  // There is one. Good until the next push() or pop().
  Response& front() { return items_[head_ & mask_]; }
  void pop();
  /// READ, atomic: has_room() holds. ACK, NAK, selective: replaces another of these at the end of the queue.
  void push(const Response& response);
  /// `response` instead of all that waits.
  void replace_all(const Response& response);
  /// A READ or atomic whose packets from `psn` to its end are all still in the queue.
  bool covers(uint32_t psn, uint32_t packets) const;

 private:
  uint32_t most_answers_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t answers_ = 0;
  std::vector<Response> items_;
};

}  // namespace ringbolt::transport
