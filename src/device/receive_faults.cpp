// What befalls receives on purpose, and queue pairs that go silent or wake up slowly. docs/faults.md is the page for
// users.

#include "base/clock.h"
#include "base/lock_guard.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

ibv_wc_status QueuePair::receive_fault() {
  return static_cast<ibv_wc_status>(faults_.judge(fault::Subject::receive, context_.port()).status);
}

void QueuePair::look_at_cable() {
  if (port_->unplugged() != fault::Unplug::flush) {
    return;
  }
  const base::LockGuard send_guard(send_lock_);
  const base::LockGuard receive_guard(receive_lock_);
  const ibv_qp_state state = state_.load(std::memory_order_relaxed);
  if (state != IBV_QPS_RESET && state != IBV_QPS_INIT) {
    enter_error(IBV_WC_WR_FLUSH_ERR);
  }
}

bool QueuePair::is_silenced() {
  const Port& port = context_.port();
  if (type_ != IBV_QPT_UD && port.plug() != plug_at_rtr_.load(std::memory_order_relaxed)) {
    return true;  // what it is connected to is not at this cable's end
  }
  if (port.is_frozen()) {
    return true;
  }
  const auto ageing = faults_.holding(fault::Kind::qp_age, port);
  if (!ageing) {
    return false;
  }
  const uint64_t now = base::now_ns();
  uint64_t never = 0;
  last_traffic_ns_.compare_exchange_strong(never, now, std::memory_order_relaxed);
  return now - last_traffic_ns_.load(std::memory_order_relaxed) > ageing->after_ns;
}

/// Not may_receive(): that says only that it is worth a look, of datagrams always.
bool QueuePair::has_arrived() {
  bool has_some = inboxes_ != nullptr && !inboxes_->requests.is_empty();
  for (const auto& [qpn, connection] : receive_connections()) {
    has_some = has_some || connection->receiver.has_slot();
  }
  return has_some;
}

/// After some idle time what arrives waits for the next of long ticks, until something came at two in a row.
bool QueuePair::is_coalescing() {
  const auto rule = faults_.holding(fault::Kind::coalesce, context_.port());
  if (!rule) {
    receive_.next_tick_ns = 0;
    return false;
  }
  const uint64_t now = base::now_ns();
  uint64_t never = 0;
  last_traffic_ns_.compare_exchange_strong(never, now, std::memory_order_relaxed);
  if (receive_.next_tick_ns == 0) {
    if (now - last_traffic_ns_.load(std::memory_order_relaxed) < rule->after_ns) {
      return false;
    }
    receive_.next_tick_ns = now + rule->every_ns;
    receive_.has_tick_traffic = false;
  }
  if (now < receive_.next_tick_ns) {
    return true;
  }
  const bool is_here = has_arrived();
  if (is_here && receive_.has_tick_traffic) {
    receive_.next_tick_ns = 0;
    return false;
  }
  receive_.has_tick_traffic = is_here;
  receive_.next_tick_ns += (now - receive_.next_tick_ns) / rule->every_ns * rule->every_ns + rule->every_ns;
  return false;
}

}  // namespace ringbolt::device
