// Accesses to a peer's memory that nothing orders.

#include <unistd.h>

#include <fmt/format.h>

#include "sanitizer/shadow.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

bool writes(const Request& request) { return request.use == Use::send; }

/// Two requests on one queue pair take effect in their order, but for a WRITE behind a READ or an atomic, which waits
/// for these only if it is fenced (InfiniBand specification, 10.8.3.3, table of ordering).
bool is_race(const Request& earlier, const Request& later) {
  if (earlier.qp == later.qp) {
    return writes(later) && earlier.use == Use::read && !later.is_fenced;
  }
  return writes(earlier) || writes(later);
}

Access access_of(const Request& request) {
  return writes(request) ? Access::write : request.is_atomic() ? Access::atomic : Access::read;
}

}  // namespace

Finding race_between_processes(const Request& request, const RaceTable::Entry& other, const Mention& seen) {
  constexpr std::string_view kWhat[] = {"reads", "writes", "counts"};
  std::vector<Mention> places{{"posted", request.posted}};
  if (seen.site) {
    places.push_back(seen);
  }
  return {Kind::races,
          "remote-accesses-unordered",
          "two processes access the same memory of a peer, and nothing orders them",
          fmt::format("{} at {:#x}, rkey {:#x}; meanwhile process {} {} {} bytes at {:#x} by queue pair {:#x}",
                      text_of(request), request.remote_address, request.rkey, other.pid,
                      kWhat[static_cast<uint8_t>(other.access)], other.length, other.first, other.qpn),
          std::move(places),
          "tell the other process when the completion was polled, and have it begin then"};
}

void Shadow::enter_race_table(Request& request, std::vector<Finding>& found) {
  if (race_table_ == nullptr) {
    race_table_ = std::make_unique<RaceTable>(calls_.race_table);
  }
  std::optional<RaceTable::Entry> other;
  request.race_place = race_table_->enter({request.qp->peer, request.remote_address, request.length, request.rkey,
                                           request.qpn, ::getpid(), access_of(request)},
                                          other);
  if (other) {
    found.push_back(race_between_processes(request, *other, {}));
  }
}

void Shadow::find_races(Request& request, std::vector<Finding>& found) {
  if (!request.is_one_sided() || !wish_.has(Kind::races)) {
    return;
  }
  enter_race_table(request, found);
  const auto peer = remote_.find({request.qp->peer, request.rkey});
  if (peer == remote_.end()) {
    return;
  }
  const auto* const requests = &requests_;
  const auto other = peer->second.overlap(request.remote_address, request.length,
                                          [&](uint32_t number) { return is_race(*requests->at(number), request); });
  if (!other) {
    return;
  }
  const Request& earlier = *requests_.at(*other);
  const bool is_same = earlier.qp == request.qp;
  found.push_back({Kind::races,
                   is_same ? "write-may-pass-read" : "remote-accesses-unordered",
                   is_same ? "a WRITE may change what an earlier READ has yet to read"
                           : "requests of two queue pairs access the same memory of a peer, and nothing orders them",
                   fmt::format("{} at {:#x}, rkey {:#x}; {} at {:#x} is not complete", text_of(request),
                               request.remote_address, request.rkey, text_of(earlier), earlier.remote_address),
                   {{"posted", request.posted}, {"first posted", earlier.posted}},
                   is_same ? "post the WRITE with IBV_SEND_FENCE, or poll the READ's completion first"
                           : "poll the first one's completion before posting the second, or use one queue pair"});
}

}  // namespace ringbolt::sanitizer
