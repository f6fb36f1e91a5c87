#pragma once

#include <cstdint>

#include "trace/counter.h"
#include "trace/layout.h"

namespace ringbolt::trace {

/// Both clocks now, the kernel's and the counter; without a counter the kernel's is both. Thread-safe.
/// Within some tens of nanoseconds, if the thread keeps its core for one of three readings.
Moment moment_now(bool has_counter) noexcept;

/// What the kernel's clock showed when the counter showed `ticks`: on the straight line through two moments, of which
/// `last` is the later. Pure.
/// Moments that are the same, as without a counter at the beginning, give that of `last`.
uint64_t ns_at(uint64_t ticks, const Moment& first, const Moment& last) noexcept;

/// For times that are noted often and told rarely: what is noted is a reading of the counter, the recorder's own ticks,
/// for a third of what the kernel's clock costs, and becomes nanoseconds only when it is told. Thread-safe.
class TickClock {
 public:
  uint64_t now() const noexcept { return has_counter_ ? read_counter() : base::now_ns(); }
  /// Of CLOCK_MONOTONIC; exact to some tens of nanoseconds for what was noted in its own life.
  uint64_t ns(uint64_t ticks) const noexcept { return ns_at(ticks, begun_, moment_now(has_counter_)); }

 private:
  const bool has_counter_ = trace::has_counter();
  const Moment begun_ = moment_now(has_counter_);
};

}  // namespace ringbolt::trace
