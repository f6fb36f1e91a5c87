// Hot path: no allocation or lock for a message that is as it should be.
#include "verify/stream_receiver.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include <fmt/format.h>

#include "base/clock.h"

namespace ringbolt::tools::verify {
namespace {

/// After a mismatch: data that comes so much later is late, and not wrong. Of the first mismatches it is awaited
/// longer.
constexpr uint64_t kLookUs = 1000;
constexpr uint64_t kPatientLooks = 30;
constexpr uint64_t kPatientTimes = 8;
/// What has left the sender and is not here after so long is lost. Over RC its completion says that it was here.
constexpr uint64_t kReliableQuietNs = 50'000'000;
constexpr uint64_t kQuietNs = 250'000'000;
/// After the end: for what comes twice.
constexpr uint64_t kStragglersNs = 3'000'000;

}  // namespace

StreamReceiver::StreamReceiver(const Context& context, const Rig& rig, bool acknowledges)
    : context_(context),
      rig_(rig),
      acknowledges_(acknowledges),
      told_(rig.queue_pairs()),
      acknowledge_every_(std::max<uint64_t>(uint64_t{context.step.receive_depth} * rig.queue_pairs() / 4, 1)),
      quiet_ns_(context.step.transport == pair::Transport::kRc ? kReliableQuietNs : kQuietNs) {
  context_.peer.keep_newest_of("flush");
  const uint64_t seed = seed_of(context.step, !context.is_client);
  for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
    lanes_.emplace_back(context.step, index, rig.epoch(), seed, context.tally);
  }
}

uint64_t StreamReceiver::sum(uint64_t (Arrivals::*figure)() const) const {
  return std::accumulate(lanes_.begin(), lanes_.end(), uint64_t{0},
                         [figure](uint64_t sum, const Arrivals& lane) { return sum + (lane.*figure)(); });
}

std::string StreamReceiver::where() const {
  std::string text;
  constexpr size_t kMostShown = 4;
  for (size_t index = 0; index < std::min(lanes_.size(), kMostShown); ++index) {
    text += fmt::format("{}{}: {} received, message {} is next", text.empty() ? "" : ", ", lanes_[index].name(),
                        lanes_[index].messages(), lanes_[index].next());
  }
  return text;
}

bool StreamReceiver::advance() {
  std::array<ibv_wc, 16> completions;
  const size_t count = rig_.poll(rig_.receive_cq(), completions);
  for (size_t i = 0; i < count; ++i) {
    take(completions[i]);
  }
  untold_ += count;
  if (untold_ >= acknowledge_every_ && acknowledges_) {
    acknowledge();
  }
  if (count != 0) {
    fruitless_ = 0;
    arrived_ns_ = base::now_ns();
    return true;
  }
  constexpr uint32_t kPause = 64;
  if (acknowledges_ && ++fruitless_ % kPause == 0) {
    take_texts();
    if (untold_ != 0) {
      acknowledge();
    }
    wait_for_stragglers();
  }
  return false;
}

void StreamReceiver::take(const ibv_wc& completion) {
  const auto index = static_cast<uint32_t>(completion.wr_id >> 32U);
  const auto slot = static_cast<uint32_t>(completion.wr_id);
  if (index >= lanes_.size() || slot >= rig_.receives()) {
    context_.tally.add(Kind::kUnasked,
                       fmt::format("a receive completed that was not posted (id {:#x})", completion.wr_id));
    return;
  }
  if (completion.status != IBV_WC_SUCCESS) {
    if (is_tolerant_) {
      return;
    }
    context_.peer.fail(fmt::format("{}: the receive of message {} ended with status {} ({}); {}", rig_.name(index),
                                   lanes_[index].next(), static_cast<int>(completion.status),
                                   rig_.status_text(completion.status), where()));
  }
  if (completion.opcode != IBV_WC_RECV) {
    context_.tally.add(Kind::kUnasked,
                       fmt::format("{}: where message {} was due, a completion of kind {} came", lanes_[index].name(),
                                   lanes_[index].next(), static_cast<int>(completion.opcode)));
  }
  constexpr uint64_t kRouteHeaderBytes = 40;
  uint64_t length = completion.byte_len;
  if (context_.step.transport == pair::Transport::kUd) {
    length -= std::min(length, kRouteHeaderBytes);
  }
  check_message(index, slot, length);
  rig_.post_receive(index, slot);
}

template <class Look>
bool StreamReceiver::becomes_right(Look&& look) {
  constexpr timespec kPause{0, kLookUs * 1000};
  const uint64_t looks = ++mismatches_ <= kPatientTimes ? kPatientLooks : 1;
  for (uint64_t i = 0; i < looks; ++i) {
    ::nanosleep(&kPause, nullptr);
    if (look()) {
      return true;
    }
  }
  return false;
}

void StreamReceiver::check_message(uint32_t index, uint64_t slot, uint64_t length) {
  Arrivals& lane = lanes_[index];
  const std::span<std::byte> room = rig_.receive_slot(index, slot);
  const auto message = [&] {
    std::atomic_thread_fence(std::memory_order_acquire);  // the device writes it behind the compiler's back
    return std::span<const std::byte>(room.first(std::min<uint64_t>(length, room.size())));
  };
  uint64_t explained = length;
  const uint64_t number = lane.next();
  const uint64_t bytes = lane.verified_bytes();
  if (!lane.accept(message(), length)) {
    const uint64_t begin = base::now_ns();
    if (becomes_right([&] { return lane.accept(message(), length); })) {
      lane.note_late((base::now_ns() - begin) / 1000);
    } else {
      explained = lane.examine(message(), length, rig_.is_untouched(index, slot));
    }
  }
  if (context_.step.transport == pair::Transport::kUc && lane.next() > number + 1) {
    explained = room.size();  // of a message before it a part may have come: its receive serves the next one
  }
  if (const auto damage = rig_.find_outside(index, slot, explained)) {
    context_.tally.add(
        Kind::kOutside,
        fmt::format("{}: around message {} of {} bytes {} byte{} were written, the first at offset {} of its buffer",
                    lane.name(), number, length, damage->bytes, damage->bytes == 1 ? "" : "s", damage->first));
    explained = room.size();
  }
  rig_.prepare(index, slot, explained < room.size() ? explained : UINT64_MAX);
  context_.watch.progress().count(1, lane.verified_bytes() - bytes);
}

void StreamReceiver::acknowledge() {
  std::vector<uint64_t> settled;
  for (const Arrivals& lane : lanes_) {
    settled.push_back(lane.settled());
  }
  untold_ = 0;
  if (settled != told_) {
    told_ = settled;
    context_.peer.tell("credit", settled);
  }
}

void StreamReceiver::take_texts() {
  if (posted_.empty()) {
    if (const auto text = context_.peer.look("flush", "messages")) {
      flushed_ = context_.peer.numbers_in(*text, lanes_.size());
      flush_ns_ = base::now_ns();
    }
    if (const auto text = context_.peer.look("end", "messages")) {
      posted_ = context_.peer.numbers_in(*text, lanes_.size());
      end_ns_ = base::now_ns();
    }
  }
}

void StreamReceiver::wait_for_stragglers() {
  const uint64_t now = base::now_ns();
  if (!flushed_.empty() && now - std::max(flush_ns_, arrived_ns_) > quiet_ns_) {
    for (size_t index = 0; index < lanes_.size(); ++index) {
      lanes_[index].give_up(flushed_[index]);
    }
    flushed_.clear();
    acknowledge();
  }
  if (!posted_.empty() && !is_done_ && now - end_ns_ > kStragglersNs) {
    finish(posted_);
  }
}

bool StreamReceiver::has_all(uint64_t messages) const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [messages](const Arrivals& lane) { return lane.settled() >= messages; });
}

void StreamReceiver::finish_early() {
  std::vector<uint64_t> come;
  for (const Arrivals& lane : lanes_) {
    come.push_back(lane.next());
  }
  finish(come);
}

void StreamReceiver::finish(const std::vector<uint64_t>& posted) {
  for (size_t index = 0; index < lanes_.size(); ++index) {
    lanes_[index].give_up(posted[index]);
    lanes_[index].judge_loss(posted[index]);
  }
  is_done_ = true;
}

}  // namespace ringbolt::tools::verify
