#include "trace/tick_clock.h"

namespace ringbolt::trace {

Moment moment_now(bool has_counter) noexcept {
  if (!has_counter) {
    const uint64_t now = base::now_ns();
    return {now, now};
  }
  // The one of three in which the kernel's clock was read the fastest.
  Moment best;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = read_counter();
    const uint64_t ns = base::now_ns();
    const uint64_t after = read_counter();
    if (after - before < least) {
      least = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

uint64_t ns_at(uint64_t ticks, const Moment& first, const Moment& last) noexcept {
  if (last.ticks <= first.ticks || last.ns <= first.ns) {
    return last.ns;
  }
  const double rate = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
  // From the later moment: of what was noted a short time ago the difference is small, and no digits are lost.
  // Signed: what was noted after the moment comes to lie behind it.
  const auto since = static_cast<double>(static_cast<int64_t>(last.ticks - ticks));
  return last.ns - static_cast<uint64_t>(static_cast<int64_t>(since * rate));
}

}  // namespace ringbolt::trace
