#pragma once

namespace ringbolt::device {

/// What is left after a look at what no program polls for, that no peer's bell will announce. The more urgent, the
/// greater.
enum class Remains {
  nothing,
  timers,  ///< sends whose time may run out while their program sleeps
  work,    ///< sends that found no room
};

}  // namespace ringbolt::device
