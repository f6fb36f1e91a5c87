// What faults do to packets, and what is said of those that came to nothing.

#include <poll.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/debug_log.h"
#include "base/lock_guard.h"
#include "base/say.h"
#include "device/faults.h"
#include "device/network.h"
#include "device/process.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kSocketPatienceNs = 100'000'000;  // for room in the socket

void print_drops(const Drops::Port& port) {
  std::string reasons;
  uint64_t all = 0;
  for (size_t kind = 0; kind < kDrops; ++kind) {
    if (port.counts[kind] != 0) {
      reasons += fmt::format("{}{} {}", all == 0 ? "" : ", ", port.counts[kind], reason_of(static_cast<Drop>(kind)));
      all += port.counts[kind];
    }
  }
  if (all != 0) {
    base::say(fmt::format("ringbolt: {}: dropped {} packets: {}\n", port.name, all, reasons));
  }
}

void print_faults(const link::UdpFaults::Seen& seen) {
  const fault::Tally& tally = seen.tally;
  if (tally.frames != 0) {
    base::say(fmt::format(
        "ringbolt: {}: faults on {}: {} frames, {} lost, {} duplicated, {} reordered, {} corrupted, {} "
        "truncated, {} delayed, {} overflowed\n",
        seen.place.port, seen.direction == fault::Direction::send ? "sending" : "receiving", tally.frames, tally.lost,
        tally.duplicated, tally.reordered, tally.corrupted, tally.truncated, tally.delayed, seen.overflowed));
  }
}

}  // namespace

void Network::add(const Port& port) {
  drops_.add_port(port.netdev_index, port.name, process_.counters(port.counter_path));
  if (is_stream(port.netdev_index)) {
    return streams_->add(port);
  }
  const base::LockGuard guard(faults_lock_);
  for (const link::UdpFaultPort& known : fault_ports_) {
    if (known.interface_index == port.netdev_index) {
      return;
    }
  }
  fault_ports_.push_back({port.netdev_index, place_of(port)});
  set_faults();
}

void Network::look_at_faults() {
  if (!endpoint_) {
    return;
  }
  const cluster::ControlPage& control = process_.fabric().control;
  if (control.is_open() && control.generation() != faults_generation_.load(std::memory_order_relaxed)) [[unlikely]] {
    const base::LockGuard guard(faults_lock_);
    set_faults();
  }
}

void Network::set_faults() {
  const Fabric& fabric = process_.fabric();
  if (fabric.control.is_open()) {
    // Before the file is read: a change in between is seen the next time.
    faults_generation_.store(fabric.control.generation(), std::memory_order_relaxed);
  }
  std::string complaint;
  const fault::Plan plan = fabric.faults.read(complaint);
  if (!complaint.empty()) {
    base::say(fmt::format("ringbolt: no faults of the cluster: {}\n", complaint));
  }
  endpoint_->set_faults(plan, fault_ports_);
}

void Network::leave() {
  if (streams_) {
    streams_->leave();
  }
  if (endpoint_) {
    // The last acknowledgement of a connection may be among them, and nobody is left to send it later.
    endpoint_->set_faults({}, {});
    const uint64_t deadline = base::now_ns() + kSocketPatienceNs;
    // What was held back is let go by the plan without rules, and leaves with the first flush.
    for (send_late(); has_late_.load(std::memory_order_relaxed) && base::now_ns() < deadline; send_late()) {
      ::poll(nullptr, 0, 1);
    }
  }
  if (base::is_debug_log_wanted()) {
    report();
  }
}

void Network::report() const {
  for (const Drops::Port& port : drops_.read()) {
    print_drops(port);
  }
  if (!endpoint_) {
    return;
  }
  for (const link::UdpFaults::Seen& seen : endpoint_->faults_seen()) {
    print_faults(seen);
  }
  const link::UdpCounters counters = endpoint_->counters();
  const uint64_t misshapen = counters.dropped_runts + counters.dropped_oversize + counters.dropped_malformed;
  if (misshapen + counters.dropped_strangers + counters.forward_failures + counters.send_refused != 0) {
    base::say(fmt::format(
        "ringbolt: network: dropped {} misshapen datagrams, {} packets for nobody, {} for a process that did not "
        "take them, {} that the kernel refused to send\n",
        misshapen, counters.dropped_strangers, counters.forward_failures, counters.send_refused));
  }
}

}  // namespace ringbolt::device
