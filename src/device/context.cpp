#include "device/context.h"

#include <utility>

#include "base/clock.h"
#include "device/recording.h"

namespace ringbolt::device {

Context::Context(std::shared_ptr<const Port> port, std::shared_ptr<Process> process)
    : port_(std::move(port)),
      process_(std::move(process)),
      counters_(process_->counters(port_->counter_path)),
      network_(port_->is_on_network() ? &process_->open_network() : nullptr) {
  if (network_ != nullptr) {
    network_->add(*port_);
  }
  port_->look_at_addresses(true);  // they may have changed since the devices were listed
  was_up_.store(port_->is_up());
  gid_generation_.store(port_->live_gids->generation());
  process_->add(this);
  port_->fabric->control.refresh();  // the process is told of changes from now on
}

Context::~Context() {
  if (!process_->is_abandoned()) {
    process_->remove(this);
    port_->tell_seen();  // what the service thread has not got to
  }
}

void Context::look_at_port(bool addresses_changed) {
  if (network_ != nullptr) {
    network_->look_at_faults();
  }
  // Not the process's own fabric: each list of devices has one, with its own copy of what is cut and broken.
  port_->fabric->control.refresh();
  port_->fabric->verb_faults.look();
  port_->look_at_addresses(addresses_changed);
  const bool is_up = port_->is_up();
  if (was_up_.exchange(is_up) != is_up) {
    push_port_event(is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
  }
  const uint32_t generation = port_->live_gids->generation();
  if (gid_generation_.exchange(generation) != generation) {
    push_port_event(IBV_EVENT_GID_CHANGE);
  }
}

void Context::push(const ibv_async_event& event) {
  const shuffle::Shuffle* const shuffle = port_->fabric->verb_faults.shuffle();
  if (shuffle == nullptr) [[likely]] {
    return events_.push(event);
  }
  const uint64_t late_ns = shuffle::delay_ns(shuffle->draw(shuffle::Kind::async, 0, events_seen_.fetch_add(1) + 1));
  const uint64_t due_ns = base::now_ns() + late_ns;
  events_.push_late(event, due_ns);
  process_->watch_until(due_ns);
}

void Context::push_port_event(ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  if (trace::recorder() != nullptr) [[unlikely]] {
    record_async_event(type, nullptr);
  }
  push(event);
}

void Context::announce(ibv_event_type type, void* element) {
  if (trace::recorder() != nullptr) [[unlikely]] {
    record_async_event(type, element);
  }
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = static_cast<ibv_qp*>(element);
  push(event);
}

}  // namespace ringbolt::device
