#pragma once

#include <cstdint>

#include "perf/parameters.h"

namespace ringbolt::tools::perf {

/// How many messages of one size a queue pair holds. Message m is sent from slot m % slots_used() and lands in slot
/// m % receive_slots.
struct Depths {
  uint32_t in_flight = 0;      ///< posted and not completed, at most
  uint32_t send_slots = 0;     ///< at least two more than in_flight
  uint32_t receive_slots = 0;  ///< also the window: sent and not yet known to be checked
  uint32_t signal_every = 0;   ///< of the posted, every so many'th completes visibly; at most in_flight
  uint32_t post_list = 1;
  bool has_one_place = false;  ///< nothing is compared: all messages of a queue pair share one, as in perftest

  /// By default as many as fit a budget of memory that stays in a processor's cache. Thread-safe.
  /// Of latency, where one message is under way, as few as do.
  static Depths of(uint64_t size_bytes, const Parameters& parameters, const Tuning& tuning, bool is_latency);
  /// For a device whose queues hold no more than `most` messages.
  void limit(uint64_t most);
};

/// How many of its slots an end sends from, to one that receives in `receive_slots`: the latter should be no multiple
/// of it, so that what a slot held before never is what it should hold next. Both ends compute it. Thread-safe.
uint32_t slots_used(uint32_t send_slots, uint32_t receive_slots);

}  // namespace ringbolt::tools::perf
