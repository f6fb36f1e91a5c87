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

  /// A cable may have been cut or healed, or its faults changed: announces IBV_EVENT_PORT_ERR or IBV_EVENT_PORT_ACTIVE
  /// when ours was.
  void look_at_port();
  /// Announces an event of a queue pair, completion queue, SRQ (`element`) or the device.
  void announce(ibv_event_type type, void* element);

 private:
  std::shared_ptr<const Port> port_;
  std::shared_ptr<Process> process_;
  const std::shared_ptr<cluster::CounterPage> counters_;
  Network* const network_;
  AsyncEvents events_;
  std::atomic<bool> was_up_;
};

}  // namespace ringbolt::device
