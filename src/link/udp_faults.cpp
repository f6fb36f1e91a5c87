#include "link/udp_faults.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/lock_guard.h"
#include "trace/recorder.h"
#include "wire/bytes.h"

namespace ringbolt::link {
namespace {

constexpr size_t kBthLength = 12;
constexpr uint32_t kPsnMask = 0xffffff;

/// A fault strikes a packet, from its BTH on, that leaves or comes in.
void record_fault(std::span<const std::byte> packet, const fault::Verdict& verdict, bool leaves) {
  if (trace::recorder() == nullptr || verdict.is_clean() || packet.size() < kBthLength) {
    return;
  }
  trace::Record what;
  what.kind = trace::Kind::fault;
  what.object = wire::get_be24(packet, 5);  // the queue pair that it is for
  what.code = leaves ? trace::kFaultOfPeers : trace::kFaultOfOwn;
  what.number = wire::get_be<uint32_t>(packet, 8) & kPsnMask;  // get_be24() reads a byte more, which may not be there
  what.bytes = static_cast<uint32_t>(packet.size());
  what.flags =
      static_cast<uint8_t>((verdict.is_lost ? trace::kLost : 0) | (verdict.hold_ns != 0 ? trace::kHeld : 0) |
                           (verdict.is_harmed() ? trace::kChanged : 0) | (verdict.copies != 0 ? trace::kCopied : 0));
  trace::note(what);
}

}  // namespace

UdpFaults::UdpFaults() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_.is_open()) {
    throw base::Error(errno, "timerfd_create", "UDP link", "look at the limits of this process (ulimit -n)");
  }
}

void UdpFaults::set(const fault::Plan& plan, std::span<const UdpFaultPort> ports, uint64_t now_ns) {
  const base::LockGuard guard(lock_);
  for (const UdpFaultPort& wanted : ports) {
    if (find(wanted.interface_index) == nullptr && !plan.rules.empty()) {
      ports_.push_back({wanted.interface_index,
                        {fault::Stream(wanted.place, fault::Direction::send)},
                        {fault::Stream(wanted.place, fault::Direction::receive)}});
    }
  }
  for (Port& port : ports_) {
    const bool is_wanted = std::ranges::any_of(
        ports, [&](const UdpFaultPort& wanted) { return wanted.interface_index == port.interface_index; });
    port.out.stream.set_rules(is_wanted ? plan : fault::Plan{}, now_ns);
    port.in.stream.set_rules(is_wanted ? plan : fault::Plan{}, now_ns);
    port.out.shelf.release_all();
    port.in.shelf.release_all();
  }
  set_timer();
}

UdpFaults::Port* UdpFaults::find(uint32_t interface_index) {
  const auto found = std::ranges::find(ports_, interface_index, &Port::interface_index);
  return found == ports_.end() ? nullptr : &*found;
}

template <class Frame>
void UdpFaults::hold(Way<Frame>& way, Frame frame, const fault::Verdict& verdict, uint64_t now_ns) {
  if (way.shelf.is_full()) {
    ++way.overflowed;
    return;
  }
  way.shelf.put(std::move(frame), verdict.overtakers, now_ns + verdict.hold_ns);
}

bool UdpFaults::send(const UdpPath& path, std::span<const std::byte> packet, uint64_t now_ns,
                     std::vector<UdpDeparture>& departures) {
  const base::LockGuard guard(lock_);
  Port* port = find(path.interface_index);
  if (port == nullptr) {
    return true;
  }
  constexpr size_t kIcrcBytes = 4;
  const fault::Verdict verdict = port->out.stream.judge(packet.size() + kIcrcBytes, now_ns);
  if (verdict.is_clean()) {
    port->out.shelf.count_passing();
    return true;
  }
  record_fault(packet, verdict, true);
  if (verdict.is_lost) {
    return false;
  }
  for (uint32_t i = 0; i <= verdict.copies; ++i) {
    UdpDeparture departure{path, {packet.begin(), packet.end()}, verdict};
    if (verdict.hold_ns != 0) {
      hold(port->out, std::move(departure), verdict, now_ns);
    } else {
      departures.push_back(std::move(departure));
      port->out.shelf.count_passing();
    }
  }
  set_timer();
  return false;
}

std::optional<UdpDeparture> UdpFaults::take_departure(uint64_t now_ns) {
  const base::LockGuard guard(lock_);
  for (Port& port : ports_) {
    if (auto departure = port.out.shelf.take(now_ns)) {
      return departure;
    }
  }
  set_timer();
  return std::nullopt;
}

void UdpFaults::give_back(UdpDeparture departure) {
  const base::LockGuard guard(lock_);
  if (Port* port = find(departure.path.interface_index)) {
    hold(port->out, std::move(departure), fault::Verdict{}, 0);
    set_timer();
  }
}

void UdpFaults::arrive(UdpArrival&& arrival, uint64_t now_ns, std::vector<UdpArrival>& arrivals) {
  const base::LockGuard guard(lock_);
  Port* port = find(arrival.interface_index);
  if (port == nullptr) {
    arrivals.push_back(std::move(arrival));
    return;
  }
  const fault::Verdict verdict = port->in.stream.judge(arrival.packet.size(), now_ns);
  record_fault(arrival.packet, verdict, false);
  if (verdict.is_lost) {
    return;
  }
  fault::turn_bits(verdict, arrival.packet);
  arrival.packet = arrival.packet.first(std::min(arrival.packet.size(), verdict.kept_bytes));
  for (uint32_t i = 0; i <= verdict.copies; ++i) {
    if (verdict.hold_ns != 0) {
      hold(port->in, arrival, verdict, now_ns);
    } else {
      arrivals.push_back(arrival);
      port->in.shelf.count_passing();
    }
  }
  while (auto late = port->in.shelf.take(now_ns)) {
    arrivals.push_back(std::move(*late));
  }
  set_timer();
}

void UdpFaults::take_arrivals(uint64_t now_ns, std::vector<UdpArrival>& arrivals) {
  const base::LockGuard guard(lock_);
  for (Port& port : ports_) {
    while (auto late = port.in.shelf.take(now_ns)) {
      arrivals.push_back(std::move(*late));
    }
  }
  set_timer();
}

void UdpFaults::set_timer() {
  uint64_t departure_ns = UINT64_MAX;
  uint64_t arrival_ns = UINT64_MAX;
  bool is_on = false;
  for (const Port& port : ports_) {
    departure_ns = std::min(departure_ns, port.out.shelf.next_due_ns());
    arrival_ns = std::min(arrival_ns, port.in.shelf.next_due_ns());
    is_on |= !port.is_idle();
  }
  next_departure_ns_.store(departure_ns, std::memory_order_relaxed);
  is_on_.store(is_on, std::memory_order_release);
  const uint64_t next_ns = std::min(departure_ns, arrival_ns);
  if (next_ns == timer_ns_) {
    return;
  }
  timer_ns_ = next_ns;
  itimerspec when{};  // all zero: never
  if (next_ns != UINT64_MAX) {
    const uint64_t at_ns = std::max<uint64_t>(next_ns, 1);  // a time that is over: at once
    when.it_value = {static_cast<time_t>(at_ns / 1'000'000'000), static_cast<long>(at_ns % 1'000'000'000)};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

std::vector<UdpFaults::Seen> UdpFaults::seen() const {
  const base::LockGuard guard(lock_);
  std::vector<Seen> all;
  for (const Port& port : ports_) {
    all.push_back({port.out.stream.place(), fault::Direction::send, port.out.stream.tally(), port.out.overflowed});
    all.push_back({port.in.stream.place(), fault::Direction::receive, port.in.stream.tally(), port.in.overflowed});
  }
  return all;
}

}  // namespace ringbolt::link
