// Hot path: see receive_circuit.h.
#include "circuit/receive_circuit.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/crc.h"
#include "base/little_endian.h"
#include "circuit/line_copy.h"
#include "circuit/paths.h"

namespace ringbolt::circuit {
namespace {

// Four windows of all rails: those that stand, and those that have failed and held something.
constexpr size_t kMostHeld = 4 * kMostRails * kWindow;

/// Of a frame: none where it was written to its place.
size_t payload_bytes(const FrameHeader& header) { return header.is_written ? 0 : header.length; }

}  // namespace

ReceiveCircuit::ReceiveCircuit(CircuitId id, MemberId peer, std::string peer_name, bool has_checksums,
                               std::shared_ptr<const Devices> devices, uint16_t port, uint64_t least_written_bytes)
    : Circuit(id, peer, std::move(peer_name), has_checksums),
      devices_(std::move(devices)),
      // Rails of other devices register the same memory with theirs.
      answers_(devices_->device_of(port).pd,
               kClearToSendAt + (least_written_bytes == 0 ? 0 : kClearToSendPlaces * kClearToSendBytes),
               verbs::Contents::anything),
      clearing_(least_written_bytes == 0 ? nullptr : std::make_unique<Clearing>(least_written_bytes)) {
  held_.reserve(kMostHeld);
  rails_.reserve(64);  // added without allocation while the program runs
}

// With the lock, as all functions here. Null: too many are posted; ask again.
Receive* ReceiveCircuit::post(uint32_t n, void* const* data, const size_t* capacities, const int* tags,
                              const Registered* const* registered) {
  if (queue_.is_full()) {
    progress();
    return nullptr;
  }
  Receive& receive = queue_.next();
  for (uint32_t i = 0; i < n; ++i) {
    receive.parts[i].data = static_cast<std::byte*>(data[i]);
    receive.parts[i].capacity = capacities[i];
    receive.parts[i].tag = tags[i];
  }
  // Before the receive is in the queue: base() asks whether all others are full.
  const std::optional<uint32_t> from = clearing_ && clearing_->is_long(receive, n) ? base() : std::nullopt;
  queue_.post(n);
  set_awaited(true);
  if (clearing_) {
    clearing_->post(receive, registered, from);
    tell_clearances();
  }
  // In the order of the messages, as the sender reckons it (receive_queue.h).
  if (first_unmatched_ != next_message_) {
    for (uint32_t number = first_unmatched_; number != next_message_; ++number) {
      Message& waiting = message(number);
      // A place of the ring may be that of another message by now.
      if (waiting.number == number && waiting.stage == Message::Stage::unmatched) {
        (void)match(waiting);
      }
    }
    deliver_held();
  }
  return &receive;
}

bool ReceiveCircuit::is_done(const Receive& receive) {
  if (!queue_.is_done(receive)) {
    progress();
  }
  return queue_.is_done(receive);
}

// Never blocks, and allocates only where frames have to be set aside.
void ReceiveCircuit::progress() {
  // The program's memory may be gone.
  if (is_abandoned_) {
    return;
  }
  bool has_heard = false;
  for (OnRail& rail : rails_) {
    if (rail.has_failed) {
      continue;
    }
    const bool is_sound = rail.rail->poll(
        [&](const Rail::Received& received) RINGBOLT_REQUIRES(lock) {
          has_heard = true;
          hear(rail, received);
        },
        [](uint32_t) {});
    // What it had completed before was heard all the same. Its frames that are held stay good: memory of the rail
    // lives until take_ended() gives it out.
    rail.has_failed = !is_sound;
    const bool is_due = rail.n_taken - rail.n_told >= kTakenPerAnswer && rail.untold_bytes >= kBytesPerAnswer;
    if (!has_heard && (rail.owes_word || is_due) && is_sound) {
      tell_taken(rail);
    }
  }
  // Only when nothing comes: what is missing may be among what has arrived.
  if (!has_heard && !held_.empty()) {
    make_way();
  }
  if (owes_) {
    tell_owed();
  }
  if (clearing_ && clearing_->has_something_to_tell()) {
    tell_clearances();
  }
  // What is here already is handed over first, round by round.
  if (end_of_sender_ && !has_heard) [[unlikely]] {
    fail(FailureKind::peer, *end_of_sender_);
  }
}

// By the endpoint's thread, each tick: what is owed but not due would else keep the sender's slots for ever.
void ReceiveCircuit::progress_idle() {
  progress();
  for (OnRail& rail : rails_) {
    if (!rail.has_failed && (rail.owes_word || rail.n_told != rail.n_taken)) {
      tell_taken(rail);
    }
  }
}

/// Of the next message, whole, where nothing is held up and its receive is there: all that hear_data() would do of it
/// then, in less than half the instructions. False: it is something else, and nothing has been done.
bool ReceiveCircuit::take_next_whole(OnRail& rail, const Rail::Received& received) {
  using namespace frame_layout;
  const std::span<const std::byte> head = received.head;
  // Then `number`, window and matching are certain without a look at any of them.
  const bool is_in_step = rail.n_taken == rail.n_received && first_unmatched_ == next_message_ && held_.empty() &&
                          !rail.may_lose && failure() == FailureKind::none;
  if (!is_in_step || !is_plain_whole(head, received.length_bytes) ||
      base::get_le<uint16_t>(head, kRailAt) != rail.number ||
      base::get_le<uint32_t>(head, kCircuitAt) != static_cast<uint32_t>(id()) ||
      base::get_le<uint32_t>(head, kSequenceAt) != arrivals_.first_missing() ||
      base::get_le<uint32_t>(head, kMessageAt) != next_message_ ||
      message(next_message_).stage != Message::Stage::none) {
    return false;
  }
  const auto length = base::get_le<uint32_t>(head, kLengthAt);
  const auto place = queue_.find(static_cast<int32_t>(base::get_le<uint32_t>(head, kTagAt)));
  if (place.part == nullptr || place.part->capacity < length) {
    return false;
  }
  // From here on nothing can fail.
  ReceiveQueue::take(place);
  copy_lines(place.part->data, received.frame + kShortHeaderBytes, length);
  place.part->length = length;
  ReceiveQueue::finish(place);
  // In the order of hear_data(): the counts first, then the slot, which a new frame may fill at once.
  arrivals_.note_first();
  first_unmatched_ = ++next_message_;
  if (clearing_) {
    clearing_->heard(base::get_le<uint8_t>(head, kHeardAt));
  }
  rail.untold_bytes += length;
  ++rail.n_received;
  ++rail.n_taken;
  (void)rail.rail->free(received.slot);
  if (rail.n_taken - rail.n_told >= kMostUntold) {
    tell_taken(rail);
  }
  return true;
}

void ReceiveCircuit::hear(OnRail& rail, const Rail::Received& received) {
  if (take_next_whole(rail, received)) {
    return;
  }
  const auto header = parse_frame(received.head, received.length_bytes);
  if (!header || header->circuit != static_cast<uint32_t>(id()) || header->rail != rail.number) {
    if (rail.may_lose) {
      (void)rail.rail->free(received.slot);  // it counts as lost
      return;
    }
    fail(FailureKind::protocol, fmt::format("{} sent a frame that can't be read ({} bytes, on {})", peer_name(),
                                            received.length_bytes, rail.rail->name()));
    return;
  }
  if (header->kind == FrameKind::whole || header->kind == FrameKind::piece) {
    hear_data(rail, received, *header);
    return;
  }
  // Not by free(): a hello is rare, and the peer may wait for its answer.
  (void)rail.rail->post_receive(received.slot);
  if (header->kind == FrameKind::hello) {
    rail.is_greeted = true;
    rail.may_lose = rail.owes_word = header->is_numbered;
    if (rail.rail->may_send()) {
      answer(rail, FrameKind::hello_ack);
    }
    // Also where no answer could be sent: it greets again, or the next hello comes by another rail.
    open();
  }
}

void ReceiveCircuit::hear_data(OnRail& rail, const Rail::Received& received, const FrameHeader& header) {
  // May fail the circuit; then there is none.
  const std::optional<uint32_t> its_number = number_of(rail, received, header);
  if (!its_number) {
    return;
  }
  const uint32_t number = *its_number;
  rail.untold_bytes += header.length;
  const std::byte* const payload = received.frame + header_bytes_of(header.kind);
  if (clearing_) {
    clearing_->heard(header.heard);
  }
  // Before the frame counts: see receive_direct.cpp.
  if (header.was_tried) [[unlikely]] {
    end_tried(rail, header.tried_rail);
  }
  if (is_spoilt(header, payload)) {
    fail(
        FailureKind::protocol,
        fmt::format("the checksum of {} bytes at {} of message {} from {} is wrong, on {}: memory, a cable or a device "
                    "spoils data",
                    header.length, header.offset, header.message, peer_name(), rail.rail->name()));
    return;
  }
  // It came by another rail before, and counts as taken on this one, too, or the sender would wait for ever.
  if (arrivals_.is_known(header.sequence)) {
    save_from_repetition(header.sequence);
    take(rail, number, received.slot, true);
    return;
  }
  // A sender that keeps to kMostAhead never gets here.
  if (held_.size() == kMostHeld) {
    fail(FailureKind::protocol, fmt::format("{} frames from {} wait for receives", held_.size(), peer_name()));
    return;
  }
  // A piece that was written has a number for each frame that it might have been sent as.
  for (uint32_t i = 0; i < std::max(sequences_of(header.length), 1U); ++i) {
    arrivals_.note(header.sequence + i);
  }
  if (deliver(header, payload)) {
    take(rail, number, received.slot, true);
    if (!held_.empty()) {
      deliver_held();
    }
    return;
  }
  // The frame stays in its slot of the rail, whose receive is not posted again meanwhile.
  held_.push_back({rail.number, number, received.slot, true, header, payload, nullptr});
}

/// False: not now, it has to be held.
bool ReceiveCircuit::deliver(const FrameHeader& header, const std::byte* payload) {
  Message& its = message(header.message);
  const auto ahead = static_cast<int32_t>(header.message - next_message_);
  // Messages begin in order; and its place in the ring may still be an older one's that is not complete.
  if (ahead > 0 || (ahead == 0 && its.stage != Message::Stage::none)) {
    return false;
  }
  if (ahead == 0) {
    its = {Message::Stage::unmatched, header.message, header.tag, static_cast<size_t>(header.total), 0, {}, false};
    ++next_message_;
    (void)match(its);
  }
  // Of one that is complete the stage is none: all its bytes have come already.
  if (its.number != header.message || its.total != header.total || its.stage == Message::Stage::none) {
    fail(FailureKind::protocol, fmt::format("{} contradicts itself about message {}", peer_name(), header.message));
    return true;
  }
  if (its.stage == Message::Stage::unmatched) {
    return false;
  }
  if (failure() != FailureKind::none) {
    return true;  // nothing is written any more: the message may be longer than its buffer
  }
  if (!header.is_written) {
    // In bounds: parse_frame() has offset + length <= total, match() total <= capacity, or the circuit has failed.
    copy_lines(its.place.part->data + header.offset, payload, header.length);
  } else if (!check_written(its, header)) {
    return true;
  }
  its.has_written = its.has_written || header.is_written;
  its.n_received += header.length;
  if (its.n_received == its.total) {
    its.place.part->length = its.total;
    ReceiveQueue::finish(its.place);
    its.stage = Message::Stage::none;
    owes_ = owes_ || its.has_written;
  }
  return true;
}

bool ReceiveCircuit::match(Message& of) {
  of.place = queue_.match(of.tag);
  if (of.place.part == nullptr) {
    return false;
  }
  of.stage = Message::Stage::matched;
  if (of.total > of.place.part->capacity) {
    fail(FailureKind::usage,
         fmt::format("{} sends {} bytes (message {}, tag {}), and the receive that was posted for them "
                     "has {}: post a receive of that size",
                     peer_name(), of.total, of.number, of.tag, of.place.part->capacity));
  }
  const auto is_waiting = [&](uint32_t number) RINGBOLT_REQUIRES(lock) {
    return message(number).number == number && message(number).stage == Message::Stage::unmatched;
  };
  // Tags may let a later message find its receive first.
  while (first_unmatched_ != next_message_ && !is_waiting(first_unmatched_)) {
    ++first_unmatched_;
  }
  return true;
}

// Until a round delivers nothing: each frame may be the one that another waits for. Linear in what is held, which is
// little.
void ReceiveCircuit::deliver_held() {
  for (bool has_delivered = true; has_delivered;) {
    has_delivered = false;
    for (size_t i = 0; i < held_.size();) {
      if (!deliver(held_[i].header, held_[i].payload)) {
        ++i;
        continue;
      }
      const Held done = std::move(held_[i]);
      held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
      has_delivered = true;
      aside_bytes_ -= done.aside ? payload_bytes(done.header) : 0;
      if (OnRail* const rail = find(done.rail); rail != nullptr && done.has_slot) {
        take(*rail, done.number, done.slot, true);
      }
    }
  }
}

/// Of a rail, frame `number` has been taken.
void ReceiveCircuit::take(OnRail& rail, uint32_t number, uint32_t slot, bool has_slot) {
  // The sender is told in order alone, so a gap keeps what is behind it. number - n_taken is below kWindow:
  // number_of() has seen to it.
  rail.is_taken[number % kWindow] = true;
  while (rail.n_taken != rail.n_received && rail.is_taken[rail.n_taken % kWindow]) {
    rail.is_taken[rail.n_taken % kWindow] = false;
    rail.come.forget(rail.n_taken);
    ++rail.n_taken;
  }
  if (has_slot && !rail.has_failed) {
    (void)rail.rail->free(slot);
  }
  if (static_cast<int32_t>(number - rail.n_taken) > 0) {
    // It may take frames itself, and so come back here: once for each frame in the window at most.
    set_aside(rail);
  }
  if ((rail.n_taken - rail.n_told >= kMostUntold || rail.n_unsaid >= kMostUntold) && !rail.has_failed) {
    tell_taken(rail);
  }
  rail.owes_word = rail.owes_word || (rail.may_lose && rail.n_told != rail.n_taken);
}

void ReceiveCircuit::copy_aside(Held& held) {
  if (!held.aside) {
    const size_t bytes = payload_bytes(held.header);
    held.aside = std::make_unique<std::byte[]>(std::max<size_t>(bytes, 1));
    std::memcpy(held.aside.get(), held.payload, bytes);
    held.payload = held.aside.get();
    aside_bytes_ += bytes;
  }
}

/// A frame that waits for its receive, though later ones have been taken, must not hold up its rail: the receive may be
/// posted only when those others are done. Frames are told to be taken in order alone, so its bytes go elsewhere.
// Bounded by kMostAsideBytes for the circuit: a sender can't make this process hold more.
void ReceiveCircuit::set_aside(OnRail& rail) {
  for (Held& held : held_) {
    const bool is_oldest = held.rail == rail.number && held.has_slot && held.number == rail.n_taken;
    if (is_oldest && aside_bytes_ + payload_bytes(held.header) <= kMostAsideBytes) {
      copy_aside(held);
      held.has_slot = false;
      take(rail, held.number, held.slot, true);
      return;
    }
  }
}

/// A frame is missing that was under way on a rail that has failed, say. It can come by another one only if that has
/// room; and what fills that may be held for just what is missing.
void ReceiveCircuit::make_way() {
  const auto is_after_hole = [&](const Held& held) {
    return static_cast<int32_t>(held.header.sequence - arrivals_.first_missing()) > 0;
  };
  if (std::ranges::none_of(held_, is_after_hole)) {
    return;
  }
  for (OnRail& rail : rails_) {
    uint32_t n_before = rail.n_taken - 1;
    // Until the rail has room again, or nothing more can be set aside.
    while (!rail.has_failed && rail.n_received - rail.n_taken == kWindow && n_before != rail.n_taken) {
      n_before = rail.n_taken;
      set_aside(rail);
    }
  }
}

/// The sender sends a frame again that is held here: once it has been told that the repetition has come, it may write
/// over the first one, if that lies in its memory.
void ReceiveCircuit::save_from_repetition(uint32_t sequence) {
  for (Held& held : held_) {
    if (held.header.sequence == sequence) {
      copy_aside(held);
    }
  }
}

// Null: it has been taken out. The pointer is good until a rail is added or taken out.
ReceiveCircuit::OnRail* ReceiveCircuit::find(uint16_t number) {
  const auto found = std::ranges::find(rails_, number, &OnRail::number);
  return found == rails_.end() ? nullptr : &*found;
}

void ReceiveCircuit::add_rail(uint16_t number, std::unique_ptr<Rail> rail, Path path) {
  const std::optional<uint32_t> ring = take_answer_ring();
  OnRail& added = rails_.emplace_back();
  added.number = number;
  added.rail = std::move(rail);
  added.path = std::move(path);
  added.answer_ring = ring.value_or(kAnswerRings);
  // So that nothing is received by a circuit that has failed, and the sender hears of it.
  if (failure() != FailureKind::none) {
    added.has_failed = !added.rail->fail("the circuit has failed");
  } else if (!ring) {
    added.has_failed = !added.rail->fail(fmt::format("the circuit has {} others", rails_.size() - 1));
  }
}

void ReceiveCircuit::fail_rail(uint16_t number, const std::string& why) {
  if (OnRail* const rail = find(number)) {
    progress();  // what has come is here
    rail->has_failed = true;
    (void)rail->rail->fail(why);
  }
}

std::vector<ReceiveCircuit::Ended> ReceiveCircuit::take_ended() {
  std::vector<Ended> ended;
  std::erase_if(rails_, [&](OnRail& rail) {
    // Frames that were not set aside lie in the rail's memory.
    const bool holds =
        std::ranges::any_of(held_, [&](const Held& held) { return held.rail == rail.number && !held.aside; });
    if (!rail.has_failed || holds) {
      return false;
    }
    ended.push_back({rail.number, std::move(rail.path), std::move(rail.rail)});
    return true;
  });
  return ended;
}

std::vector<ReceiveCircuit::RailView> ReceiveCircuit::rails() const {
  std::vector<RailView> views;
  for (const OnRail& rail : rails_) {
    views.push_back({rail.number, &rail.path, rail.rail.get()});
  }
  return views;
}

}  // namespace ringbolt::circuit
