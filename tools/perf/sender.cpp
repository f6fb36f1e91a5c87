// Hot path: no allocation, lock or system call for a message.
#include "perf/sender.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/message.h"

namespace ringbolt::tools::perf {
namespace {

/// Over UC and UD, after so long without a credit: notices are sent again, and what is under way is given up.
constexpr uint64_t kRemindNs = 2'000'000;
constexpr uint64_t kLostNs = 50'000'000;

}  // namespace

Sender::Sender(Link& link, Peer& peer)
    : link_(link),
      poster_(link, peer, link.parameters().operation == Operation::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_SEND),
      pace_(link.parameters()),
      is_write_(link.parameters().operation == Operation::kWrite),
      is_compared_(link.parameters().bandwidth_check != Check::kNone),
      window_(link.theirs().window),
      slots_(slots_used(link.depths().send_slots, link.theirs().window)),
      notice_every_(std::max(window_ / 4, 1U)),
      lanes_(link.queue_pairs()),
      last_credit_ns_(base::now_ns()) {
  constexpr uint64_t kMostWarmUp = 64;
  limit_ = std::min<uint64_t>(window_, kMostWarmUp) * lanes_.size();
}

bool Sender::is_all_credited() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.credited == lane.posted; });
}

std::vector<uint64_t> Sender::posted() const {
  std::vector<uint64_t> counts;
  std::ranges::transform(lanes_, std::back_inserter(counts), &Lane::posted);
  return counts;
}

bool Sender::advance() {
  bool has_worked = false;
  needs_credits_ = false;
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    has_worked |= post(index);
    needs_credits_ |= lanes_[index].posted - lanes_[index].credited > window_ / 4 * 3;
  }
  has_worked |= reap();
  // While there is plenty of room, credits can wait: looking for them costs as much as a small message.
  if (needs_credits_ || phase_ != Phase::kRunning) {
    has_worked |= take_credits();
  }
  if (has_worked) {
    fruitless_ = 0;
  } else if (!link_.is_reliable() && ++fruitless_ % 1024 == 0) {
    look_for_loss();
  }
  change_phase();
  return has_worked;
}

bool Sender::post(uint32_t index) {
  Lane& lane = lanes_[index];
  bool has_posted = false;
  // A bounded share, so that the other queue pairs and directions get theirs.
  for (uint32_t lists = 0; lists < 128; ++lists) {
    const uint64_t room =
        std::min(link_.depths().in_flight - (lane.posted - lane.completed), window_ - (lane.posted - lane.credited));
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(room, link_.depths().post_list));
    while (poster_.added() < most) {
      const uint64_t total = posted_total_;
      const bool is_wanted = phase_ == Phase::kWarming   ? total < limit_
                             : phase_ == Phase::kRunning ? pace_.wants_more(total - timing_.first)
                                                         : false;
      if (!is_wanted) {
        break;
      }
      const std::span<std::byte> slot = link_.send_slot(index, lane.posted % slots_);
      if (is_compared_) {
        write_stamp(slot, stamp_of(link_.seed(), lane.posted));
      }
      const uint64_t remote = is_write_ ? link_.remote_receive_address(index, lane.posted % window_) : 0;
      poster_.add(index, slot, remote);
      ++lane.posted;
      ++posted_total_;
    }
    if (poster_.added() == 0) {
      break;
    }
    poster_.post(index);
    has_posted = true;
    if (is_write_ && lane.posted - lane.noticed >= notice_every_) {
      post_notice(index);
    }
  }
  const bool is_flushing = phase_ != Phase::kRunning && (phase_ == Phase::kEnding || posted_total_ == limit_);
  if (is_write_ && is_flushing && lane.noticed != lane.posted) {
    post_notice(index);
  }
  return has_posted;
}

void Sender::post_notice(uint32_t index) {
  Lane& lane = lanes_[index];
  // Half of the receives, so that a late completion is no overrun.
  if (lane.notices_under_way < Link::kNotices / 2) {
    lane.noticed = lane.posted;
    ++lane.notices_under_way;
    link_.post_notice(index, lane.posted, uint64_t{index} << 32U);
  }
}

bool Sender::reap() {
  std::array<ibv_wc, 16> completions;
  const int count = link_.poll(link_.send_cq(), completions, "what was sent");
  for (int i = 0; i < count; ++i) {
    const uint64_t id = completions[static_cast<size_t>(i)].wr_id;
    Lane& lane = lanes_[id >> 32U];
    const auto covered = static_cast<uint32_t>(id);
    lane.completed += covered;
    lane.notices_under_way -= covered == 0 ? 1 : 0;  // of a notice
    timing_.tx_operations += covered;
  }
  if (count > 0) {
    last_completion_ns_ = base::now_ns();
  }
  return count > 0;
}

bool Sender::take_credits() {
  bool has_taken = false;
  while (const std::optional<Link::Word> credit = link_.take_credit()) {
    if (credit->queue_pair < lanes_.size()) {
      Lane& lane = lanes_[credit->queue_pair];
      // Late ones are older than what we know; ones beyond what was sent can't be.
      if (credit->count > lane.credited && credit->count <= lane.posted) {
        lane.credited = credit->count;
        last_credit_ns_ = base::now_ns();
        has_taken = true;
      }
    }
  }
  return has_taken;
}

void Sender::look_for_loss() {
  const uint64_t silent_ns = base::now_ns() - last_credit_ns_;
  if (silent_ns > kLostNs) {
    for (Lane& lane : lanes_) {
      lane.credited = lane.posted;
    }
    if (phase_ == Phase::kRunning) {
      last_credit_ns_ = base::now_ns();
    }
  } else if (silent_ns > kRemindNs && is_write_) {
    for (uint32_t index = 0; index < lanes_.size(); ++index) {
      if (lanes_[index].credited != lanes_[index].posted) {
        post_notice(index);
      }
    }
  }
}

void Sender::change_phase() {
  switch (phase_) {
    case Phase::kWarming:
      if (posted_total_ == limit_ && is_all_credited()) {
        phase_ = Phase::kRunning;
        timing_.first = posted_total_;
        begin_ns_ = last_credit_ns_ = base::now_ns();
        pace_.begin(begin_ns_);
      }
      break;
    case Phase::kRunning:
      if (!pace_.wants_more(posted_total_ - timing_.first)) {
        phase_ = Phase::kEnding;
      }
      break;
    case Phase::kEnding:
      if (is_all_credited()) {
        phase_ = Phase::kDone;
        timing_.duration_ns = last_credit_ns_ - begin_ns_;
        // What was under way when the clock started may complete later: then it has to be left out.
        timing_.tx_operations -= std::min(timing_.first, timing_.tx_operations);
        timing_.tx_duration_ns = timing_.tx_operations == 0 ? 0 : last_completion_ns_ - begin_ns_;
      }
      break;
    case Phase::kDone:
      break;
  }
}

}  // namespace ringbolt::tools::perf
