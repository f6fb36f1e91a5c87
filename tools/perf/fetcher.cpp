// Hot path: no allocation, lock or system call for an operation.
#include "perf/fetcher.h"

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace ringbolt::tools::perf {
Fetcher::Fetcher(Link& link, Peer& peer)
    : link_(link),
      fetch_(link, peer, link.parameters().bandwidth_check),
      poster_(link, peer, Fetch::opcode_of(link.parameters())),
      pace_(link.parameters()),
      lanes_(link.queue_pairs()),
      limit_(link.depths().in_flight * uint64_t{link.queue_pairs()}) {}

std::vector<uint64_t> Fetcher::counts() const {
  std::vector<uint64_t> counts;
  std::ranges::transform(lanes_, std::back_inserter(counts), &Lane::posted);
  return counts;
}

bool Fetcher::advance() {
  bool has_worked = false;
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    has_worked |= post(index);
  }
  has_worked |= reap();
  change_phase();
  return has_worked;
}

bool Fetcher::post(uint32_t index) {
  Lane& lane = lanes_[index];
  const auto most = static_cast<uint32_t>(
      std::min<uint64_t>(link_.depths().in_flight - (lane.posted - lane.checked), link_.depths().post_list));
  while (poster_.added() < most) {
    const bool is_wanted = phase_ == Phase::kWarming   ? posted_ < limit_
                           : phase_ == Phase::kRunning ? pace_.wants_more(posted_ - timing_.first)
                                                       : false;
    if (!is_wanted) {
      break;
    }
    fetch_.add(poster_, index, lane.posted);
    ++lane.posted;
    ++posted_;
  }
  if (poster_.added() == 0) {
    return false;
  }
  poster_.post(index);
  return true;
}

bool Fetcher::reap() {
  std::array<ibv_wc, 16> completions;
  const int count = link_.poll(link_.send_cq(), completions, "what was asked for");
  for (int i = 0; i < count; ++i) {
    const uint64_t id = completions[static_cast<size_t>(i)].wr_id;
    const auto index = static_cast<uint32_t>(id >> 32U);
    Lane& lane = lanes_[index];
    for (auto covered = static_cast<uint32_t>(id); covered > 0; --covered) {
      fetch_.check(index, lane.checked++);
      ++checked_;
    }
  }
  return count > 0;
}

void Fetcher::change_phase() {
  if (phase_ == Phase::kWarming && posted_ == limit_ && checked_ == posted_) {
    phase_ = Phase::kRunning;
    timing_.first = posted_;
    begin_ns_ = base::now_ns();
    pace_.begin(begin_ns_);
  }
  if (phase_ == Phase::kRunning && !pace_.wants_more(posted_ - timing_.first) && checked_ == posted_) {
    phase_ = Phase::kDone;
    timing_.duration_ns = base::now_ns() - begin_ns_;
  }
}

}  // namespace ringbolt::tools::perf
