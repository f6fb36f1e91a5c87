// Hot path: no allocation, lock or system call for a message.
#include "perf/sender.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/message.h"

namespace ringbolt::tools::perf {
namespace {

/// Over UC and UD, after so long without a credit: notices are sent again, and what is under way is given up.
constexpr uint64_t kRemindNs = 2'000'000;
constexpr uint64_t kLostNs = 50'000'000;

/// A nap must not hold the sender up, who has three quarters of the window left when a notice comes: so many messages,
/// of half a microsecond at least, take longer than this and the slack of the timer.
constexpr std::chrono::microseconds kNap{20};
constexpr uint32_t kLeastNapWindow = 256;

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
  } else if (!link_.loses_nothing() && ++fruitless_ % 1024 == 0) {
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

Receiver::Receiver(Link& link, Peer& peer)
    : link_(link),
      peer_(peer),
      is_write_(link.parameters().operation == Operation::kWrite),
      may_nap_(is_write_ && link.depths().receive_slots >= kLeastNapWindow && !link.parameters().is_bidirectional &&
               !link.has_events()),
      check_(link.parameters().bandwidth_check),
      window_(link.depths().receive_slots),
      slots_(slots_used(link.theirs().send_slots, window_)),
      credit_every_(std::max(window_ / 2, 1U)),
      lanes_(link.queue_pairs()) {}

bool Receiver::advance() {
  std::array<ibv_wc, 16> completions;
  const int count = link_.poll(link_.receive_cq(), completions, "a receive");
  for (int i = 0; i < count; ++i) {
    const ibv_wc& one = completions[static_cast<size_t>(i)];
    const auto index = static_cast<uint32_t>(one.wr_id >> 32U);
    const auto slot = static_cast<uint32_t>(one.wr_id);
    is_write_ ? take_notice(index, slot) : take_message(index, slot, one.byte_len);
  }
  if (count == 0) {
    when_idle();
    return false;
  }
  fruitless_ = 0;
  return true;
}

void Receiver::check(uint32_t index, std::span<const std::byte> message, uint64_t sequence) {
  const auto source = static_cast<uint32_t>(sequence % slots_);
  if (const auto wrong = find_damage(message, link_.theirs().seed, sequence, source, check_)) {
    peer_.fail(fmt::format("message {} of {} bytes on queue pair {} is damaged from byte {} on", sequence,
                           message.size(), index, *wrong));
  }
}

void Receiver::take_message(uint32_t index, uint32_t slot, uint32_t length) {
  Lane& lane = lanes_[index];
  const std::span<std::byte> message = link_.receive_slot(index, slot);
  const size_t header = link_.parameters().transport == Transport::kUd ? Link::kRouteHeaderBytes : 0;
  if (length != message.size() + header) {
    peer_.fail(fmt::format("message {} of {} bytes arrived as {}", lane.next, message.size(), length - header));
  }
  uint64_t sequence = lane.next;
  if (check_ != Check::kNone) {
    sequence = sequence_in(message, lane.next);
    if (sequence != lane.next && (link_.loses_nothing() || sequence < lane.next)) {
      peer_.fail(fmt::format("message {} on queue pair {} came where {} was due", sequence, index, lane.next));
    }
    check(index, message, sequence);
  }
  receipt_.lost += sequence - lane.next;
  ++receipt_.messages;
  lane.next = sequence + 1;
  link_.post_receive(index, slot);
  acknowledge(index, credit_every_);
}

void Receiver::take_notice(uint32_t index, uint32_t slot) {
  Lane& lane = lanes_[index];
  Link::Word word;
  std::memcpy(&word, link_.notice_slot(index, slot).data(), sizeof word);
  link_.post_notice_receive(index, slot);
  if (word.count > lane.next + window_ && link_.loses_nothing()) {
    peer_.fail(fmt::format("a notice tells of {} messages where {} were due at most", word.count, lane.next + window_));
  }
  for (; lane.next < word.count; ++lane.next) {
    const std::span<std::byte> message = link_.receive_slot(index, lane.next % window_);
    // Of an unreliable WRITE that never came the slot still holds what was there before.
    if (!link_.loses_nothing() && check_ != Check::kNone &&
        !has_stamp(message, stamp_of(link_.theirs().seed, lane.next))) {
      ++receipt_.lost;
      continue;
    }
    check(index, message, lane.next);
    ++receipt_.messages;
  }
  // Also for nothing new: then the credit before was lost.
  lane.credited = std::min(lane.credited, lane.next - std::min<uint64_t>(lane.next, 1));
  acknowledge(index, 1);
}

void Receiver::acknowledge(uint32_t index, uint64_t least) {
  Lane& lane = lanes_[index];
  if (lane.next - lane.credited >= least && link_.send_credit(index, lane.next)) {
    lane.credited = lane.next;
  }
}

void Receiver::when_idle() {
  // Some microseconds after the last message: what is not acknowledged yet may be all that the sender waits for.
  constexpr uint32_t kPause = 64;
  constexpr uint32_t kBetweenNaps = 8;
  constexpr uint32_t kRepeat = 1U << 16U;
  ++fruitless_;
  if (may_nap_ && fruitless_ > kPause && fruitless_ % kBetweenNaps == 0) {
    std::this_thread::sleep_for(kNap);
  }
  if (fruitless_ % kPause != 0) {
    return;
  }
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    if (!link_.loses_nothing() && fruitless_ % kRepeat == 0) {
      lanes_[index].credited = lanes_[index].next - std::min<uint64_t>(lanes_[index].next, 1);
    }
    acknowledge(index, 1);
  }
}

void Receiver::set_posted(const std::vector<uint64_t>& counts) {
  for (size_t index = 0; index < lanes_.size(); ++index) {
    lanes_[index].posted = counts[index];
  }
  knows_posted_ = true;
}

bool Receiver::is_done() {
  if (!knows_posted_) {
    return false;
  }
  const bool has_all =
      std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.next >= lane.posted; });
  if (has_all || link_.loses_nothing()) {
    return has_all;
  }
  // The sender has waited for a credit in vain before it ended.
  for (Lane& lane : lanes_) {
    receipt_.lost += lane.posted - std::min(lane.posted, lane.next);
    lane.next = std::max(lane.next, lane.posted);
  }
  return true;
}

}  // namespace ringbolt::tools::perf
