#include "sanitizer/region_use.h"

#include <algorithm>

#include <fmt/format.h>

#include "sanitizer/received_data.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {

std::vector<Finding> forsake_requests(RequestTable& table, const Queues& queues, const ibv_mr& mr,
                                      std::string_view call, const base::CallSite& site) {
  std::vector<Finding> found;
  table.each([&](Request& request) {
    if (std::ranges::find(request.pieces, mr.lkey, &Piece::lkey) == request.pieces.end()) {
      return;
    }
    const bool is_known = request.is_given_up || (request.qp != nullptr && request.qp->failed);
    // Before the program has its memory back: it must find there what it had left.
    unpoison(request);
    request.is_forsaken = true;
    if (queues.may_execute(request) && !is_known) {
      found.push_back({Kind::buffers,
                       "region-gone-in-use",
                       "a region was deregistered under a request that uses it",
                       fmt::format("{} of lkey {:#x}, {} bytes at {:#x}; {} is not complete", call, mr.lkey, mr.length,
                                   reinterpret_cast<uint64_t>(mr.addr), text_of(request)),
                       {{"deregistered", site}, {"posted", request.posted}},
                       "poll the completion first; destroy the queue pair first if receives are still posted"});
    }
  });
  return found;
}

void unpoison_exposed(RequestTable& table, const Region& region) {
  if (!region.lets_peers_write()) {
    return;
  }
  table.each([&](Request& request) {
    const auto is_there = [&](const Piece& one) { return region.overlaps(one); };
    if (request.is_poisoned && std::ranges::any_of(request.pieces, is_there)) {
      unpoison(request);
    }
  });
}

}  // namespace ringbolt::sanitizer
