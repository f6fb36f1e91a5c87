#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "circuit/circuit.h"

namespace ringbolt::circuit {

/// Receives of one circuit that are posted at a time, and buffers of one.
inline constexpr uint32_t kMostReceives = 32;  // NCCL_NET_MAX_REQUESTS
inline constexpr uint32_t kMostParts = 8;

/// One buffer of a receive.
struct Part {
  std::byte* data = nullptr;
  size_t capacity = 0;
  int32_t tag = 0;
  bool is_taken = false;    ///< by a message
  bool is_done = false;     ///< which is all there
  size_t length = 0;        ///< of the message
  bool is_cleared = false;  ///< the sender may write to it (clearing.h)
};

/// A posted receive: a group of buffers, each for one message.
struct Receive : Request {
  uint32_t n_parts = 0;
  uint32_t n_untaken = 0;
  uint32_t n_undone = 0;
  uint32_t clearance = 0;  ///< its number among those of which the sender is told (clearing.h)
  std::array<Part, kMostParts> parts;
};

/// Receives in the order of their posting, and which message belongs to which buffer: the first receive that is not
/// full takes it; among its buffers the first of the message's tag. A receive of one buffer takes any tag: what comes
/// first. Receives are done in order. Who takes what does not depend on which became known first, messages or receives,
/// as long as each kind comes in its order: so the sender, which hears of receives later, comes to the same
/// (clearances.h). Pure; no allocation. Not thread-safe. References and pointers stay good until pop() of their
/// receive: the array does not move.
class ReceiveQueue {
 public:
  bool is_full() const { return n_ == kMostReceives; }
  bool is_empty() const { return n_ == 0; }
  /// For the caller to fill in, but for the counts; then post(). Not if it is full.
  // Unchecked: of a full queue it would be the oldest receive, in use.
  Receive& next() { return receives_[(first_ + n_) % kMostReceives]; }
  void post(uint32_t n_parts) {
    Receive& receive = next();
    receive.n_parts = receive.n_untaken = receive.n_undone = n_parts;
    for (Part& part : std::span(receive.parts).first(n_parts)) {
      part.is_taken = part.is_done = part.is_cleared = false;
      part.length = 0;
    }
    ++n_;
  }

  /// Where a message with this tag goes, given that those before it have been matched; null: nowhere yet.
  struct Place {
    Receive* receive = nullptr;
    Part* part = nullptr;
  };
  Place match(int32_t tag) {
    const Place place = find(tag);
    if (place.part != nullptr) {
      take(place);
    }
    return place;
  }
  /// Likewise, but it does not go there before take().
  // At most kMostReceives x kMostParts are looked at; mostly the first one fits.
  Place find(int32_t tag) {
    for (uint32_t i = 0; i < n_; ++i) {
      Receive& receive = receives_[(first_ + i) % kMostReceives];
      if (receive.n_untaken == 0) {
        continue;
      }
      for (Part& part : std::span(receive.parts).first(receive.n_parts)) {
        if (!part.is_taken && (receive.n_parts == 1 || part.tag == tag)) {
          return {&receive, &part};
        }
      }
    }
    return {};
  }
  /// Each of a place once, take() before finish().
  static void take(Place place) {
    place.part->is_taken = true;
    --place.receive->n_untaken;
  }
  /// Whether no buffer waits for a message.
  // True of an empty queue.
  bool is_taken() const {
    for (uint32_t i = 0; i < n_; ++i) {
      if (receives_[(first_ + i) % kMostReceives].n_untaken != 0) {
        return false;
      }
    }
    return true;
  }
  /// The oldest one; not if it is empty.
  const Receive& first() const { return receives_[first_ % kMostReceives]; }
  static void finish(Place place) {
    place.part->is_done = true;
    --place.receive->n_undone;
  }

  /// Whether this is the oldest one and all its messages are there; pop() then makes room.
  bool is_done(const Receive& receive) const {
    return n_ > 0 && &receive == &receives_[first_ % kMostReceives] && receive.n_undone == 0;
  }
  void pop() {
    first_ = (first_ + 1) % kMostReceives;
    --n_;
  }

 private:
  std::array<Receive, kMostReceives> receives_;
  uint32_t first_ = 0;
  uint32_t n_ = 0;
};

}  // namespace ringbolt::circuit
