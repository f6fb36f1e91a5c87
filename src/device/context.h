#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "device/async_events.h"
#include "device/limits.h"
#include "device/port.h"
#include "device/process.h"

namespace ringbolt::device {

/// An opened device. Thread-safe.
class Context {
 public:
  /// Throws base::Error.
  Context(std::shared_ptr<const Port> port, std::shared_ptr<Process> process);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Port& port() const { return *port_; }
  const std::shared_ptr<const Port>& shared_port() const { return port_; }
  Process& process() { return *process_; }
  const std::shared_ptr<Process>& shared_process() const { return process_; }
  AsyncEvents& events() { return events_; }
  const std::shared_ptr<cluster::CounterPage>& counters() const { return counters_; }
  /// Null for a port in shared memory.
  Network* network() const { return network_; }

  /// A cable may have been cut or healed, its faults changed, or, if `addresses_changed`, an interface's addresses:
  /// announces IBV_EVENT_PORT_ERR or IBV_EVENT_PORT_ACTIVE, and IBV_EVENT_GID_CHANGE, when it concerns our port.
  void look_at_port(bool addresses_changed);
  /// Announces an event of a queue pair, completion queue, SRQ (`element`) or the device.
  void announce(ibv_event_type type, void* element);

 private:
  std::shared_ptr<const Port> port_;
  std::shared_ptr<Process> process_;
  const std::shared_ptr<cluster::CounterPage> counters_;
  Network* const network_;
  AsyncEvents events_;
  void push_port_event(ibv_event_type type);
  void push(const ibv_async_event& event);

  std::atomic<uint64_t> events_seen_{0};  ///< RINGBOLT_SHUFFLE
  std::atomic<bool> was_up_{false};
  std::atomic<uint32_t> gid_generation_{0};  ///< of the table that the program knows
};

}  // namespace ringbolt::device
