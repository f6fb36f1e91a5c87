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
      batch_(context, rig, "send"),
      pace_(context.step),
      window_(std::min(context.step.receive_depth, rig.their_receives())),
      seed_(seed_of(context.step, context.is_client)),
      lanes_(rig.queue_pairs()),
      begin_ns_(base::now_ns()),
      settled_ns_(begin_ns_) {
  context_.peer.keep_newest_of("credit");
}

std::string StreamSender::where() const {
  std::string text = batch_.where();
  for (size_t index = 0; index < std::min<size_t>(lanes_.size(), 4); ++index) {
    text += fmt::format("{}{}", index == 0 ? "; acknowledged " : ", ", lanes_[index].settled);
  }
  return text;
}

bool StreamSender::advance() {
  bool has_worked = false;
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    has_worked |= post(index);
  }
  has_worked |= batch_.reap([](uint32_t) {});
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
  const uint64_t before = batch_.posted(index);
  // A bounded share, so that the other queue pairs and directions get theirs.
  for (uint32_t turn = 0; turn < 16; ++turn) {
    const uint64_t number = batch_.posted(index);
    if (!lane.wants_more || !batch_.has_room(index) || number - lane.settled >= window_) {
      break;
    }
    lane.wants_more = pace_.wants_more(number);
    if (!lane.wants_more) {
      break;
    }
    const uint32_t length = size_of(context_.step, index, number);
    const std::span<std::byte> message = batch_.next_slot(index).first(length);
    write_message(message, seed_, {rig_.epoch(), static_cast<uint8_t>(index), number, length});
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    if (const int error = batch_.post(index, request, message)) {
      // A queue may hold less than it was made for: then its completions make room.
      if (batch_.under_way(index) != 0) {
        break;
      }
      context_.peer.fail(fmt::format("{}: ibv_post_send of message {} of {} bytes, with nothing under way: {}",
                                     rig_.name(index), number, length, base::reason_of(error)));
    }
  }
  has_asked_ = has_asked_ && batch_.posted(index) == before;
  return batch_.posted(index) != before;
}

bool StreamSender::take_credits() {
  bool has_taken = false;
  while (const auto text = context_.peer.look("credit", "acknowledgements")) {
    const std::vector<uint64_t> settled = context_.peer.numbers_in(*text, lanes_.size());
    for (size_t index = 0; index < lanes_.size(); ++index) {
      Lane& lane = lanes_[index];
      if (settled[index] > lane.settled) {
        lane.settled = std::min(settled[index], batch_.posted(static_cast<uint32_t>(index)));
        has_taken = true;
      }
    }
    settled_ns_ = base::now_ns();
  }
  return has_taken;
}

void StreamSender::look_for_end() {
  const bool is_waiting = batch_.is_idle();  // for acknowledgements, and nothing else
  bool is_settled = true;
  bool wants_more = false;
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    is_settled &= lanes_[index].settled == batch_.posted(index);
    wants_more |= lanes_[index].wants_more;
  }
  if (!wants_more && is_settled && is_waiting) {
    is_done_ = true;
    context_.peer.tell("end", batch_.all_posted());
    return;
  }
  // All has left, and nothing comes back: let the receiver say what it misses. Once; it answers when it has waited.
  constexpr uint32_t kSoon = 512;
  if (is_waiting && !is_settled && !has_asked_ && fruitless_ > kSoon) {
    has_asked_ = true;
    context_.peer.tell("flush", batch_.all_posted());
  }
}

}  // namespace ringbolt::tools::verify
