// Hot path: no allocation, lock or system call for a message.
#include "perf/receiver.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "perf/message.h"

namespace ringbolt::tools::perf {
namespace {

/// A nap must not hold the sender up, who has three quarters of the window left when a notice comes: so many messages,
/// of half a microsecond at least, take longer than this and the slack of the timer.
constexpr std::chrono::microseconds kNap{20};
constexpr uint32_t kLeastNapWindow = 256;

}  // namespace

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
    if (sequence != lane.next && (link_.is_reliable() || sequence < lane.next)) {
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
  if (word.count > lane.next + window_ && link_.is_reliable()) {
    peer_.fail(fmt::format("a notice tells of {} messages where {} were due at most", word.count, lane.next + window_));
  }
  for (; lane.next < word.count; ++lane.next) {
    const std::span<std::byte> message = link_.receive_slot(index, lane.next % window_);
    // Of an unreliable WRITE that never came the slot still holds what was there before.
    if (!link_.is_reliable() && check_ != Check::kNone &&
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
    if (!link_.is_reliable() && fruitless_ % kRepeat == 0) {
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
  if (has_all || link_.is_reliable()) {
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
