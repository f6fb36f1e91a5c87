#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "group/call.h"

namespace ringbolt::group {

/// A chunk of a call that this rank has not begun.
/// Whoever has it releases the receipt, which is settled.
struct Early {
  engine::ChunkHeader header;
  engine::Receipt receipt;
};

/// Chunks that have come before their calls, by call. A rank that is a little faster is always one collective ahead:
/// those chunks are kept in a ring by their numbers, and allocate nothing once it has been round. Not thread-safe.
/// Owns no memory of chunks, only the duty to have their receipts released: take_all() before it goes. How many there
/// are is bounded by the senders, who are kMostAhead calls ahead at most and wait for windows in each.
class EarlyChunks {
 public:
  /// Numbers of collectives that are apart by less than this never meet.
  static constexpr uint32_t kMostAhead = 64;

  bool empty() const { return n_plain_ == 0 && others_.empty(); }
  /// Whether all are of collectives of one phase.
  bool are_plain() const { return others_.empty(); }
  /// Whether some are of that collective of one phase.
  bool has(uint32_t number) const {
    const Place& place = ring_[number % kMostAhead];
    return !place.chunks.empty() && place.number == number;
  }

  /// Throws std::bad_alloc.
  void add(const CallId& id, const Early& chunk) {
    Place& place = ring_[id.number % kMostAhead];
    if (is_plain(id) && (place.chunks.empty() || place.number == id.number)) {
      place.number = id.number;
      place.chunks.push_back(chunk);
      ++n_plain_;
    } else {
      others_[id].push_back(chunk);
    }
  }
  /// Those of a call, which are none any more. Valid until the next take().
  std::span<const Early> take(const CallId& id) {
    taken_.clear();
    if (is_plain(id) && has(id.number)) {
      std::swap(taken_, ring_[id.number % kMostAhead].chunks);
      n_plain_ -= taken_.size();
    }
    if (const auto found = others_.find(id); found != others_.end()) {  // or came while another number had the place
      taken_.insert(taken_.end(), found->second.begin(), found->second.end());
      others_.erase(found);
    }
    return taken_;
  }
  /// All of them, likewise.
  std::span<const Early> take_all() {
    taken_.clear();
    const auto take = [&](std::vector<Early>& chunks) {
      taken_.insert(taken_.end(), chunks.begin(), chunks.end());
      chunks.clear();
    };
    for (Place& place : ring_) {
      take(place.chunks);
    }
    for (auto& [id, chunks] : others_) {
      take(chunks);
    }
    others_.clear();
    n_plain_ = 0;
    return taken_;
  }

 private:
  struct Place {
    uint32_t number = 0;
    std::vector<Early> chunks;
  };
  static bool is_plain(const CallId& id) { return !id.is_message && id.phase == Phase::only; }

  std::array<Place, kMostAhead> ring_;  // [number % kMostAhead]
  std::map<CallId, std::vector<Early>> others_;
  std::vector<Early> taken_;
  size_t n_plain_ = 0;
};

}  // namespace ringbolt::group
