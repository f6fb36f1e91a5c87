#include "device/cable_state.h"

namespace ringbolt::device {

bool CableState::is_silenced() {
  if (is_connected_type_ && port_.plug() != plug_.load(std::memory_order_relaxed)) {
    return true;  // what it is connected to is not at this cable's end
  }
  if (port_.is_frozen()) {
    return true;
  }
  const auto ageing = faults_.holding(fault::Kind::qp_age, port_);
  return ageing && idle_ns(base::now_ns()) > ageing->after_ns;
}

}  // namespace ringbolt::device
