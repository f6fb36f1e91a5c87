#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "device/port.h"
#include "device/verb_faults.h"

namespace ringbolt::device {

/// Whether anything passes between a queue pair and the cable that it was connected through: cuts and faults say so.
/// Thread-safe.
class CableState {
 public:
  /// Both must outlive it.
  CableState(const Port& port, VerbFaults& faults, ibv_qp_type type)
      : port_(port),
        faults_(faults),
        has_cable_(port.fabric->control.is_open()),
        is_connected_type_(type != IBV_QPT_UD) {}

  /// Somebody may cut it, or faults be told of what passes: the other functions have something to say.
  bool is_watched() const { return has_cable_ || faults_.has(fault::Subject::state); }
  /// Nothing passes: the cable is down, the machine frozen, or the queue pair too old.
  bool is_cut_off() {
    const bool has_states = faults_.has(fault::Subject::state);
    return (has_cable_ || has_states) && (!port_.carries() || (has_states && is_silenced()));
  }
  /// Something was sent, or received.
  void note_traffic() {
    if (faults_.has(fault::Subject::state)) [[unlikely]] {
      last_traffic_ns_.store(base::now_ns(), std::memory_order_relaxed);
    }
  }
  /// How long nothing was, as of `now_ns`; the first to ask before anything was starts the clock.
  uint64_t idle_ns(uint64_t now_ns) {
    uint64_t never = 0;
    last_traffic_ns_.compare_exchange_strong(never, now_ns, std::memory_order_relaxed);
    return now_ns - last_traffic_ns_.load(std::memory_order_relaxed);
  }
  /// The step to RTR: what it is connected to is at the end of the cable that is plugged in now.
  void connect() { plug_.store(port_.plug(), std::memory_order_relaxed); }
  void reset() { last_traffic_ns_.store(0); }

 private:
  bool is_silenced();

  const Port& port_;
  VerbFaults& faults_;
  const bool has_cable_;  // that somebody may cut: it is one of a cluster
  const bool is_connected_type_;
  std::atomic<uint32_t> plug_{0};             // as of connect()
  std::atomic<uint64_t> last_traffic_ns_{0};  // 0: none yet
};

}  // namespace ringbolt::device
