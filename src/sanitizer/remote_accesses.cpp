#include "sanitizer/remote_accesses.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

bool writes(const Request& request) { return request.use == Use::send; }

Access access_of(const Request& request) {
  return writes(request) ? Access::write : request.is_atomic() ? Access::atomic : Access::read;
}

Finding race(const Request& earlier, const Request& later) {
  const bool is_same = earlier.qp == later.qp;
  std::string what = "requests of two queue pairs access the same memory of a peer, and nothing orders them";
  std::string fix = "poll the first one's completion before posting the second, or use one queue pair";
  if (is_same) {
    what = earlier.is_atomic() ? "a WRITE may change what an earlier atomic has yet to act on"
                               : "a WRITE or an atomic may change what an earlier READ has yet to read";
    fix = fmt::format("post the later one with IBV_SEND_FENCE, or poll the {}'s completion first",
                      earlier.is_atomic() ? "atomic" : "READ");
  }
  return {Kind::races,
          is_same ? "write-may-pass-read" : "remote-accesses-unordered",
          std::move(what),
          fmt::format("{} at {:#x}, rkey {:#x}; {} at {:#x} is not complete", text_of(later), later.remote_address,
                      later.rkey, text_of(earlier), earlier.remote_address),
          {{"posted", later.posted}, {"first posted", earlier.posted}},
          std::move(fix)};
}

}  // namespace

bool is_race(const Request& earlier, const Request& later) {
  if (earlier.qp == later.qp) {
    const bool may_pass = earlier.use == Use::read && !later.is_fenced;
    return may_pass && (writes(later) || (later.is_atomic() && !earlier.is_atomic()));
  }
  return writes(earlier) || writes(later);
}

Finding race_between_processes(const Request& request, const RaceTable::Entry& met, const base::CallSite& polled) {
  constexpr std::string_view kWhat[] = {"reads", "writes", "counts"};
  std::vector<Mention> places{{"posted", request.posted}};
  if (polled) {
    places.push_back({"completion polled", polled});
  }
  return {Kind::races,
          "remote-accesses-unordered",
          "two processes access the same memory of a peer, and nothing orders them",
          fmt::format("{} at {:#x}, rkey {:#x}; meanwhile process {} {} {} bytes at {:#x} by queue pair {:#x}",
                      text_of(request), request.remote_address, request.rkey, met.pid,
                      kWhat[static_cast<uint8_t>(met.access)], met.length, met.first, met.qpn),
          std::move(places),
          "tell the other process when the completion was polled, and have it begin then"};
}

void RemoteAccesses::enter(const RequestTable& table, Request& request, std::vector<Finding>& found) {
  // Not before: most programs that are sanitized access no peer's memory.
  if (race_table_ == nullptr) {
    race_table_ = std::make_unique<RaceTable>(path_);
  }
  std::optional<RaceTable::Entry> other;
  request.race_place = race_table_->enter(
      {request.peer, request.remote_address, request.length, request.rkey, request.qpn, ::getpid(), access_of(request)},
      other);
  if (other) {
    found.push_back(race_between_processes(request, *other, {}));
  }
  if (request.length == 0) {
    return;
  }
  Spans& spans = targets_[{request.peer, request.rkey}];
  const auto earlier = spans.overlap(request.remote_address, request.length, [&](uint32_t number) {
    const Request* const one = table.find(number);
    return one != nullptr && is_race(*one, request);
  });
  if (earlier) {
    found.push_back(race(*table.find(*earlier), request));
  }
  spans.add(request.remote_address, request.length, request.number);
}

void RemoteAccesses::leave(Request& request) {
  if (const auto target = targets_.find({request.peer, request.rkey});
      request.is_one_sided() && target != targets_.end()) {
    target->second.remove(request.remote_address, request.number);
    if (target->second.is_empty()) {
      targets_.erase(target);
    }
  }
  // Only a request that was entered has one, so the table is there.
  if (request.race_place) {
    request.met = race_table_->leave(*request.race_place);
  }
}

void RemoteAccesses::forget() {
  targets_.clear();
  race_table_.reset();
}

}  // namespace ringbolt::sanitizer
