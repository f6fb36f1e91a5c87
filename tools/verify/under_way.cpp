// Hot path: complete() is called for every message.
#include "verify/under_way.h"

#include <fmt/format.h>

namespace ringbolt::tools::verify {

uint64_t UnderWay::complete(uint32_t id, Tally& tally) {
  // Fewer than 2^31 are under way, so the low half tells which it is, or was.
  const auto ahead = static_cast<int32_t>(id - static_cast<uint32_t>(completed_));
  const uint64_t number = completed_ + static_cast<uint64_t>(static_cast<int64_t>(ahead));
  if (number >= posted_) {  // also what would be before the first
    tally.add(Kind::kUnasked, fmt::format("{}: a completion of a {} that was not posted (id {:#x})", name_, kind_, id));
    return 0;
  }
  if (number < completed_ || early_.count(number) != 0) {
    tally.add(Kind::kUnasked, fmt::format("{}: {} {} completed again", name_, kind_, number));
    return 0;
  }
  if (ahead > 0) {
    tally.add(Kind::kOrder,
              fmt::format("{}: completions out of order: expected {} {}, found {}", name_, kind_, completed_, number));
    early_.insert(number);
    return 0;
  }
  const uint64_t before = completed_++;
  while (!early_.empty() && *early_.begin() == completed_) {
    early_.erase(early_.begin());
    ++completed_;
  }
  return completed_ - before;
}

}  // namespace ringbolt::tools::verify
