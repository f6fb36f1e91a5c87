#include "device/call_faults.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/explain.h"
#include "base/lock_guard.h"
#include "device/explanations.h"

namespace ringbolt::device {
namespace {

void take_time(uint64_t time_ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(time_ns)); }

}  // namespace

int inject_at_rtr(const Port& port) {
  VerbFaults& faults = port.fabric->verb_faults;
  if (faults.has(fault::Subject::object)) {
    // Registering went well: it is here that the memory for it is missing.
    const fault::Verdict verdict = faults.judge(fault::Object::dma, port, port.live->registered_bytes.load());
    if (verdict.is_refused) {
      return profile::number_of(
          port.profile, base::refused(verdict.error == 0 ? EFAULT : verdict.error, "ibv_modify_qp", [&] {
            return why_fault(fmt::format("fail dma, {} bytes are registered", port.live->registered_bytes.load()));
          }));
    }
  }
  if (!faults.has(fault::Subject::rtr)) {
    return 0;
  }
  const fault::Verdict verdict = faults.judge(fault::Subject::rtr, port);
  take_time(verdict.hold_ns);
  return !verdict.is_refused
             ? 0
             : profile::number_of(port.profile, base::refused(verdict.error, "ibv_modify_qp", [&] {
                                    return why_fault(fmt::format("rtr, at {}, error {}", port.name, verdict.error));
                                  }));
}

void inject_at_destruction(const Port& port) {
  VerbFaults& faults = port.fabric->verb_faults;
  if (faults.has(fault::Subject::destroy)) {
    take_time(faults.judge(fault::Subject::destroy, port).hold_ns);
  }
}

void inject_at_query(const Port& port) {
  VerbFaults& faults = port.fabric->verb_faults;
  if (faults.has(fault::Subject::query)) {
    take_time(faults.judge(fault::Subject::query, port).hold_ns);
  }
}

int CallStream::judge(const Port& port, std::span<const uint32_t> queue_pairs) noexcept try {
  VerbFaults& faults = port.fabric->verb_faults;
  if (const uint64_t version = faults.version(); version != known_plan_) {
    if (!stream_) {
      const uint64_t salt = (uint64_t{number_} << 8U) + static_cast<uint64_t>(call_) + 1;
      stream_.emplace(place_of(port), fault::Direction::send, fault::Subject::call, std::nullopt, salt);
    }
    stream_->set_rules(faults.rules_of(call_, queue_pairs), base::now_ns());
    known_plan_ = version;
  }
  constexpr size_t kNoBytes = 2;
  const fault::Verdict verdict = stream_->judge(kNoBytes, base::now_ns());
  return !verdict.is_refused ? 0 : profile::number_of(port.profile, base::refused(verdict.error, "call", [&] {
                                                        return why_fault(fmt::format("of calls, at {}, error {}",
                                                                                     port.name, verdict.error));
                                                      }));
} catch (const std::bad_alloc&) {
  return 0;  // without memory for its account there is no fault
}

int inject_at_registration(const Port& port) {
  if (!port.fabric->verb_faults.has(fault::Subject::call)) {
    return 0;
  }
  const base::LockGuard guard(port.live->registering);
  return port.live->registrations.judge(port, {});
}

void inject_at_posting(const Port& port) {
  if (port.unplugged() == fault::Unplug::abort) {
    std::fprintf(stderr,
                 "ringbolt: %s: the cable is pulled, and the fault \"unplug mode abort\" ends this program in "
                 "ibv_post_recv, as programs on Macs were (docs/faults/unplug.md)\n",
                 port.name.c_str());
    std::abort();
  }
}

}  // namespace ringbolt::device
