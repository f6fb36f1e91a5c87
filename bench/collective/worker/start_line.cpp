#include "start_line.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <stdexcept>

#include "base/cpu_pause.h"
#include "samples.h"

namespace ringbolt::bench {
namespace {

constexpr unsigned kCores = 2;
// Longer than a cache line takes to the other core and a rank to see it: some 600 ns.
constexpr double kLeadNs = 800;

}  // namespace

StartLine::StartLine(TurnPage& page, unsigned rank, unsigned ranks)
    : page_(page), rank_(rank), ranks_(ranks), start_(page.start.load()) {
  if (ranks > TurnPage::kMostRanks) {
    throw std::runtime_error(fmt::format("{} ranks; {} at most", ranks, TurnPage::kMostRanks));
  }
}

uint64_t StartLine::wait() {
  const bool is_crowded = ranks_ > kCores;
  if ((page_.meetings.fetch_add(1) + 1) % ranks_ == 0) {
    start_ = now_ticks() + (is_crowded ? 0 : static_cast<uint64_t>(kLeadNs / ns_per_tick()));
    page_.start.store(start_, std::memory_order_release);
  } else {
    uint64_t start = start_;
    while ((start = page_.start.load(std::memory_order_acquire)) == start_) {
      if (is_crowded) {
        sched_yield();
      } else {
        base::cpu_pause();
      }
    }
    start_ = start;
  }
  while (now_ticks() < start_) {
  }
  return start_;
}

void StartLine::finish(uint64_t ticks) {
  page_.finished[n_calls_ % 2][rank_].ticks.store(ticks, std::memory_order_release);
  ++n_calls_;
}

uint64_t StartLine::latest(uint64_t call) const {
  uint64_t ticks = 0;
  for (unsigned rank = 0; rank < ranks_; ++rank) {
    ticks = std::max(ticks, page_.finished[call % 2][rank].ticks.load(std::memory_order_acquire));
  }
  return ticks;
}

}  // namespace ringbolt::bench
