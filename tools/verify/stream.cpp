// Hot path: no allocation or lock for a message that is as it should be.
#include "verify/stream.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "verify/context.h"
#include "verify/stamp.h"
#include "verify/under_way.h"

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

/// Sends stamped messages over all queue pairs of a rig, never more than the receiver has room for. Each buffer is
/// written anew as soon as its send has completed, as a program may. Acknowledgements come beside the verbs, so that
/// they don't depend on what is verified. Not thread-safe.
class StreamSender {
 public:
  explicit StreamSender(const Rig& rig)
      : context_(rig.context()),
        rig_(rig),
        batch_(rig, "send"),
        pace_(rig.step()),
        window_(std::min(rig.step().receive_depth, rig.their_receives())),
        lanes_(rig.queue_pairs()) {
    // Each has the sums since the begin, so a late reader needs the last alone.
    context_.peer.keep_newest_of("credit");
  }

  /// "queue pair 0: 512 posted, 500 completed, queue pair 1: 470 posted, 470 completed; acknowledged 480, 470".
  std::string where() const {
    std::string text = batch_.where();
    for (size_t index = 0; index < std::min<size_t>(lanes_.size(), 4); ++index) {
      text += fmt::format("{}{}", index == 0 ? "; acknowledged " : ", ", lanes_[index].settled);
    }
    return text;
  }
  bool is_done() const { return is_done_; }
  uint64_t duration_ns() const { return settled_ns_ - begin_ns_; }

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure.
  bool advance() {
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

 private:
  struct Lane {
    uint64_t settled = 0;  // the receiver awaits no more of these
    bool wants_more = true;
  };

  bool post(uint32_t index) {
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
      write_message(message, rig_.seed(), rig_.stamp(index, number, length));
      ibv_send_wr request{};
      request.opcode = IBV_WR_SEND;
      if (const int error = batch_.post(index, request, message)) {
        // A queue may hold less than it was made for: then its completions make room.
        if (batch_.under_way(index) != 0) {
          break;
        }
        context_.peer.fail("{}: ibv_post_send of message {} of {} bytes, with nothing under way: {}", rig_.name(index),
                           number, length, base::reason_of(error));
      }
    }
    has_asked_ = has_asked_ && batch_.posted(index) == before;
    return batch_.posted(index) != before;
  }

  bool take_credits() {
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

  void look_for_end() {
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

  const Context& context_;
  const Rig& rig_;
  Batch batch_;
  Pace pace_;
  uint32_t window_;
  std::vector<Lane> lanes_;
  uint64_t begin_ns_ = base::now_ns();
  uint64_t settled_ns_ = begin_ns_;
  uint32_t turns_ = 0;
  uint32_t fruitless_ = 0;
  bool has_asked_ = false;
  bool is_done_ = false;
};

}  // namespace

Outcome run_stream(const Context& context) {
  const Step& step = context.step;
  RigShape shape;
  const bool sends = context.initiates() || step.is_bidirectional;
  const bool receives = !context.initiates() || step.is_bidirectional;
  shape.sends = sends ? step.send_depth : 1;
  // More than the sender knows of, for what comes twice.
  shape.receives = receives ? step.receive_depth + step.receive_depth / 4 + 1 : 0;
  const Rig rig(context, shape, static_cast<uint16_t>(step.epoch));
  std::optional<StreamSender> sender;
  std::optional<StreamReceiver> receiver;
  if (sends) {
    sender.emplace(rig);
  }
  if (receives) {
    receiver.emplace(rig, true);
  }
  const Part part(context.watch, title_of(step), [&] {
    return (sender ? sender->where() : "") + (sender && receiver ? "; " : "") + (receiver ? receiver->where() : "");
  });
  while ((sender && !sender->is_done()) || (receiver && !receiver->is_done())) {
    const bool has_sent = sender && !sender->is_done() && sender->advance();
    const bool has_received = receiver && receiver->advance();
    context.watch.turn(has_sent || has_received,
                       sender && !sender->is_done() ? "acknowledgements of what was sent" : "messages");
  }
  Outcome outcome;
  if (sender) {
    outcome.duration_ns = sender->duration_ns();
  }
  if (receiver) {
    receiver->add_to(outcome);
  }
  // The queue pairs stay until the other end has all that it wants.
  context.meet("done", "the end of the stream");
  return outcome;
}

StreamReceiver::StreamReceiver(const Rig& rig, bool acknowledges)
    : context_(rig.context()),
      rig_(rig),
      acknowledges_(acknowledges),
      told_(rig.queue_pairs()),
      acknowledge_every_(std::max<uint64_t>(uint64_t{rig.step().receive_depth} * rig.queue_pairs() / 4, 1)),
      quiet_ns_(rig.step().transport == pair::Transport::kRc ? kReliableQuietNs : kQuietNs) {
  context_.peer.keep_newest_of("flush");
  for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
    lanes_.emplace_back(rig.step(), index, rig.epoch(), rig.their_seed(), context_.tally);
  }
}

void StreamReceiver::add_to(Outcome& outcome) const {
  for (const Arrivals& lane : lanes_) {
    outcome.messages += lane.messages();
    outcome.bytes += lane.verified_bytes();
    outcome.lost += lane.lost();
  }
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
    // Its slot would be out of bounds: what a driver returns is not trusted.
    context_.tally.note(Kind::kUnasked, "a receive completed that was not posted (id {:#x})", completion.wr_id);
    return;
  }
  if (completion.status != IBV_WC_SUCCESS) {
    if (is_tolerant_) {
      return;
    }
    context_.peer.fail("{}: the receive of message {} ended with status {} ({}); {}", rig_.name(index),
                       lanes_[index].next(), static_cast<int>(completion.status), rig_.status_text(completion.status),
                       where());
  }
  if (completion.opcode != IBV_WC_RECV) {
    context_.tally.note(Kind::kUnasked, "{}: where message {} was due, a completion of kind {} came",
                        lanes_[index].name(), lanes_[index].next(), static_cast<int>(completion.opcode));
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
    // No atomic is read before it: it keeps the compiler from using what an earlier look has loaded.
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
    context_.tally.note(
        Kind::kOutside,
        "{}: around message {} of {} bytes {} byte{} were written, the first at offset {} of its buffer", lane.name(),
        number, length, damage->bytes, damage->bytes == 1 ? "" : "s", damage->first);
    explained = room.size();
  }
  rig_.prepare(index, slot, explained < room.size() ? explained : UINT64_MAX);
  context_.watch.count(1, lane.verified_bytes() - bytes);
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
