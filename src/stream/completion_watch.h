#pragma once

// Hot path.

#include <cstdint>

namespace ringbolt::stream {

/// What the looks at a completion queue have found, and whether it is armed to raise an event. From that follows when
/// to look at what costs more: the clock, and the queue's descriptor. Not thread-safe: under the stream's lock.
/// Source: ibv_req_notify_cq(3).
/// Why it is more than a flag: an armed queue raises one event at most, also for completions that a look has taken
/// meanwhile, and an event that is left would have the program's poll(2) return for nothing.
class CompletionWatch {
 public:
  /// Idle looks between two at the clock, which takes as long as a message.
  static constexpr uint32_t kLookAroundEvery = 16;

  /// One look, which took completions off the queue or found none.
  void looked(bool has_found) {
    has_polled_armed_ = has_polled_armed_ || (has_found && is_armed_);
    was_idle_ = !has_found;
    idle_looks_ = has_found ? 0 : idle_looks_ + 1;
  }
  /// The last look found nothing, or there was none.
  bool was_idle() const { return was_idle_; }
  bool is_time_to_look_around() const { return was_idle_ && idle_looks_ % kLookAroundEvery == 0; }
  /// The first idle look behind one that found something, or behind one around.
  bool is_first_idle() const { return idle_looks_ % kLookAroundEvery == 1; }

  bool is_armed() const { return is_armed_; }
  /// `is_done`: the device has taken the request.
  void arm(bool is_done) {
    is_armed_ = is_done;
    has_polled_armed_ = false;
  }
  /// The look that follows arming has found something, whose event may have been raised or not.
  void found_while_arming() { has_polled_armed_ = is_armed_; }
  /// Something came while the queue was armed, or may have come since: the descriptor is worth a look.
  bool may_have_event() const { return is_armed_ && (has_polled_armed_ || was_idle_); }
  /// That look at the descriptor took the event, or there was none.
  void looked_for_event(bool was_there) { arm(!was_there); }
  /// An event was taken: the next completion raises none.
  void took_event() { is_armed_ = false; }

 private:
  uint32_t idle_looks_ = 0;  // one behind the other
  bool was_idle_ = true;
  bool is_armed_ = false;
  bool has_polled_armed_ = false;  // something has come since: there is an event
};

}  // namespace ringbolt::stream
