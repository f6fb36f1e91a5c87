// Hot path: no allocation or lock for a message.
#include "verify/stream_sender.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "verify/stamp.h"

namespace ringbolt::tools::verify {

StreamSender::StreamSender(const Context& context, const Rig& rig)
    : context_(context),
      rig_(rig),
      pace_(context.step),
      window_(std::min(context.step.receive_depth, rig.their_receives())),
      seed_(seed_of(context.step, context.is_client)),
      begin_ns_(base::now_ns()),
      settled_ns_(begin_ns_) {
  context_.peer.keep_newest_of("credit");
  for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
    lanes_.push_back({UnderWay(rig.name(index), "send")});
  }
}

std::vector<uint64_t> StreamSender::posted() const {
  std::vector<uint64_t> counts;
  for (const Lane& lane : lanes_) {
    counts.push_back(lane.sends.posted());
  }
  return counts;
}

std::string StreamSender::where() const {
  std::string text;
  for (size_t index = 0; index < lanes_.size(); ++index) {
    const Lane& lane = lanes_[index];
    constexpr size_t kMostShown = 4;
    if (index < kMostShown) {
      text += fmt::format("{}queue pair {}: {} posted, {} completed, {} acknowledged", text.empty() ? "" : ", ", index,
                          lane.sends.posted(), lane.sends.completed(), lane.settled);
    }
  }
  return text;
}

bool StreamSender::advance() {
  bool has_worked = false;
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    has_worked |= post(index);
  }
  has_worked |= reap();
  constexpr uint32_t kOften = 32;
  if (!has_worked || ++turns_ % kOften == 0) {
    has_worked |= take_credits();
  }
  if (has_worked) {
    fruitless_ = 0;
  } else {
    ++fruitless_;
    look_for_end();
  }
  return has_worked;
}

bool StreamSender::post(uint32_t index) {
  Lane& lane = lanes_[index];
  const uint64_t before = lane.sends.posted();
  // A bounded share, so that the other queue pairs and directions get theirs.
  for (uint32_t turn = 0; turn < 16; ++turn) {
    const bool has_room = lane.sends.count() < rig_.sends() && lane.sends.posted() - lane.settled < window_;
    if (!lane.wants_more || !has_room) {
      break;
    }
    lane.wants_more = pace_.wants_more(lane.sends.posted());
    if (!lane.wants_more) {
      break;
    }
    const uint32_t length = size_of(context_.step, index, lane.sends.posted());
    const uint64_t slot = lane.sends.posted() % rig_.sends();
    const std::span<std::byte> message = rig_.send_slot(index, slot).first(length);
    write_message(message, seed_, {rig_.epoch(), static_cast<uint8_t>(index), lane.sends.posted(), length});
    ibv_send_wr request{};
    request.wr_id = uint64_t{index} << 32U | lane.sends.next_id();
    request.opcode = IBV_WR_SEND;
    if (const int error = rig_.post_send(index, request, message)) {
      // A queue may hold less than it was made for: then its completions make room.
      if (lane.sends.count() != 0) {
        break;
      }
      context_.peer.fail(fmt::format("{}: ibv_post_send of message {} of {} bytes, with nothing under way: {}",
                                     rig_.name(index), lane.sends.posted(), length, base::reason_of(error)));
    }
    lane.sends.note_posted();
  }
  has_asked_ = has_asked_ && lane.sends.posted() == before;
  return lane.sends.posted() != before;
}

bool StreamSender::reap() {
  std::array<ibv_wc, 16> completions;
  const size_t count = rig_.poll(rig_.send_cq(), completions);
  for (size_t i = 0; i < count; ++i) {
    const ibv_wc& one = completions[i];
    const auto index = static_cast<uint32_t>(one.wr_id >> 32U);
    if (index >= lanes_.size()) {
      context_.tally.add(Kind::kUnasked, fmt::format("{}: a send completed that was not posted", rig_.name(index)));
      continue;
    }
    if (one.status != IBV_WC_SUCCESS) {
      context_.peer.fail(fmt::format("{}: the send of message {} ended with status {} ({}); {}", rig_.name(index),
                                     lanes_[index].sends.completed(), static_cast<int>(one.status),
                                     rig_.status_text(one.status), where()));
    }
    lanes_[index].sends.complete(static_cast<uint32_t>(one.wr_id), context_.tally);
  }
  return count > 0;
}

bool StreamSender::take_credits() {
  bool has_taken = false;
  while (const auto text = context_.peer.look("credit", "acknowledgements")) {
    const std::vector<uint64_t> settled = context_.peer.numbers_in(*text, lanes_.size());
    for (size_t index = 0; index < lanes_.size(); ++index) {
      Lane& lane = lanes_[index];
      if (settled[index] > lane.settled) {
        lane.settled = std::min(settled[index], lane.sends.posted());
        has_taken = true;
      }
    }
    settled_ns_ = base::now_ns();
  }
  return has_taken;
}

void StreamSender::look_for_end() {
  bool is_waiting = true;  // for acknowledgements, and nothing else
  bool is_settled = true;
  bool wants_more = false;
  for (const Lane& lane : lanes_) {
    is_waiting &= lane.sends.count() == 0;
    is_settled &= lane.settled == lane.sends.posted();
    wants_more |= lane.wants_more;
  }
  if (!wants_more && is_settled && is_waiting) {
    is_done_ = true;
    context_.peer.tell("end", posted());
    return;
  }
  // All has left, and nothing comes back: let the receiver say what it misses. Once; it answers when it has waited.
  constexpr uint32_t kSoon = 512;
  if (is_waiting && !is_settled && !has_asked_ && fruitless_ > kSoon) {
    has_asked_ = true;
    context_.peer.tell("flush", posted());
  }
}

}  // namespace ringbolt::tools::verify
