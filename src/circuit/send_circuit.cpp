// Hot path: see send_circuit.h.
#include "circuit/send_circuit.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/crc.h"

namespace ringbolt::circuit {

SendCircuit::SendCircuit(CircuitId id, MemberId peer, std::string peer_name, bool has_checksums,
                         std::shared_ptr<const Devices> devices, uint16_t port, uint32_t n_slots,
                         uint64_t least_written_bytes)
    : Circuit(id, peer, std::move(peer_name), has_checksums),
      devices_(std::move(devices)),
      n_slots_(n_slots),
      // A slot more, for greetings that have to be as long as other frames.
      slots_(devices_->device_of(port).pd, (n_slots + 1) * kSlotBytes + kGreetings * kFrameHeaderBytes,
             verbs::Contents::anything),
      headers_(n_slots),
      free_slots_(n_slots),
      n_free_(n_slots),
      again_(n_slots),
      repeated_(n_slots),
      least_written_bytes_(least_written_bytes) {
  for (uint32_t i = 0; i < n_slots; ++i) {
    // The slot that was freed last is the next to be used: it is likeliest in a cache.
    free_slots_[i] = static_cast<uint16_t>(n_slots - 1 - i);
  }
  rails_.reserve(kGreetings);  // added without allocation while the program runs
  if (least_written_bytes != 0) {
    clearances_ = std::make_unique<Clearances>();
    clear_to_send_ = std::make_unique<ClearToSend>();
    directs_.resize(kMostSends);
    pieces_.resize(n_slots);
    rest_.reserve(n_slots);
  }
}

// The circuit's lock is held, as in all functions here (the header has the contract). Null: ask again; nothing has
// been begun.
Send* SendCircuit::post(const void* data, size_t size, int32_t tag, const Registered* registered) {
  // In turn, so a send that is not given back holds up the one 256 after it.
  Send& send = sends_[next_message_ % kMostSends];
  // Acquire: is_free is given back without the lock, and what its owner read of the send must come before it is used
  // anew.
  if (!send.is_free.load(std::memory_order_acquire)) {
    progress();
    return nullptr;
  }
  send.data = static_cast<const std::byte*>(data);
  send.size = size;
  send.n_copied = 0;
  send.tag = tag;
  send.message = next_message_++;
  // Relaxed: nobody knows this send yet. Its owner gets it from this very call.
  send.is_done.store(false, std::memory_order_relaxed);
  send.is_free.store(false, std::memory_order_relaxed);
  send.is_direct = false;
  send.n_open = 0;
  if (least_written_bytes_ != 0 && size >= least_written_bytes_ && registered != nullptr &&
      registered->holds(data, size)) {
    send.is_direct = true;
    Direct& direct = direct_of(send.message);
    direct.has_target = false;
    for (size_t device = 0; device < kMostDevices; ++device) {
      const auto key = registered->key(device);
      // Copied: the circuit never looks at the registration again, which the program may end once the send is done.
      direct.keys[device] = key ? std::optional(key->local) : std::nullopt;
    }
  }
  ++n_waiting_;
  pump();
  if (n_waiting_ > 0) {
    // Before the last try: from here on the endpoint's thread moves it on as well.
    set_awaited(true);
    progress();
  }
  return &send;
}

// Moves the circuit on only if need be: a program that tests does the circuit's work.
bool SendCircuit::is_done(Send& send) {
  if (!take_if_done(send)) {
    progress();
    return take_if_done(send);
  }
  return true;
}

SendCircuit::OnRail* SendCircuit::pick(uint32_t length) {
  return pick_of(length, [](const OnRail& rail) { return rail.rail->may_send(); });
}

void SendCircuit::pump() {
  // Older than all else: the receiver can't complete their messages without them.
  if (!rest_.empty()) [[unlikely]] {
    send_rest();
  }
  // The receiver waits for just these: a new frame that went before them would be held there.
  while (n_again_ > 0) {
    const uint16_t slot = again_[n_again_ - 1];
    // No piece is written twice (send_direct.cpp).
    if (headers_[slot].is_written) {
      if (!copy_instead(slot)) {
        return;
      }
      continue;
    }
    OnRail* const rail = pick(headers_[slot].length);
    if (rail == nullptr) {
      return;
    }
    --n_again_;
    put(*rail, slot);
  }
  // New frames must not take the slots that what is left of older pieces needs.
  while (n_waiting_ > 0 && rest_.empty()) {
    Send& send = sends_[first_waiting_ % kMostSends];
    const Started started = clearances_ ? start_direct(send) : Started::by_frames;
    if (started == Started::waits) {
      return;
    }
    while (started == Started::by_frames) {
      const auto length = static_cast<uint32_t>(std::min<size_t>(send.size - send.n_copied, kPayloadBytes));
      // The slot and the rail before anything is copied: nothing has to be undone.
      OnRail* const rail = n_free_ > 0 && may_go_on() ? pick(length) : nullptr;
      if (rail == nullptr) {
        return;
      }
      const uint16_t slot = free_slots_[--n_free_];
      base::copy_short(payload(slot), send.data + send.n_copied, length);
      FrameHeader& header = headers_[slot];
      header = {};
      header.kind = length == send.size ? FrameKind::whole : FrameKind::piece;
      header.circuit = static_cast<uint32_t>(id());
      header.length = length;
      // Kept for good: a frame that goes again has the number of its first sending, by which the receiver knows it.
      header.sequence = next_sequence_++;
      header.message = send.message;
      header.offset = send.n_copied;
      header.total = send.size;
      header.tag = send.tag;
      if (clearances_) {
        pieces_[slot] = {};
      }
      if (has_checksums()) {
        header.has_checksum = true;
        header.checksum = base::crc32c(0, {payload(slot), length});
      }
      send.n_copied += length;
      put(*rail, slot);
      if (send.n_copied == send.size) {
        break;
      }
    }
    // All of it has been numbered; the program's memory may still be read by WRITEs (n_open).
    ++first_waiting_;
    --n_waiting_;
    // Copied, so the memory is the program's again. The release lets take_if_done() do without the lock.
    if (send.n_open == 0) {
      send.is_done.store(true, std::memory_order_release);
    }
  }
  set_awaited(n_waiting_ > 0 || n_open_ > 0);
}

// The slot is in the rail's window from here on, until hear_taken() or move_on() takes it out.
void SendCircuit::put(OnRail& rail, uint16_t slot) {
  FrameHeader& header = headers_[slot];
  header.rail = rail.number;
  if (clearances_) {
    header.heard = static_cast<uint8_t>(clearances_->next_clearance());
  }
  size_t header_bytes = header_bytes_of(header.kind);
  if (rail.repeats) {
    header_bytes = put_numbered(rail, slot);
  } else {
    emit(header, payload(slot) - header_bytes);
  }
  std::byte* const frame = payload(slot) - header_bytes;
  rail.slots[rail.n_sent % kWindow] = slot;
  ++rail.n_sent;
  rail.bytes += header.length;
  // The frame counts as sent by it all the same, and so goes again with the others.
  if (!rail.rail->send(frame, static_cast<uint32_t>(header_bytes) + header.length)) {
    drop(rail);
  }
}

// Never blocks. May drop rails and fail the circuit; references to rails stay good, as none is erased.
void SendCircuit::progress() {
  for (OnRail& rail : rails_) {
    if (rail.has_failed) {
      continue;
    }
    const bool is_sound =
        rail.rail->poll([&](const Rail::Received& received) RINGBOLT_REQUIRES(lock) { hear(rail, received); },
                        [&](uint32_t cookie) RINGBOLT_REQUIRES(lock) { note_completed(cookie); });
    if (!is_sound) {
      drop(rail);
    } else if (rail.repeats) {
      repeat(rail);
    }
  }
  if (n_waiting_ > 0 || n_again_ > 0 || !rest_.empty()) {
    pump();
  }
}

void SendCircuit::hear(OnRail& rail, const Rail::Received& received) {
  const auto header = parse_frame(received.head, received.length_bytes);
  // Before its receive is freed: it is read there. A receiver that clears without having been allowed to is not
  // listened to.
  if (header && header->kind == FrameKind::clear_to_send && clearances_) {
    hear_clear_to_send(received, *header);
  }
  (void)rail.rail->free(received.slot);
  if (rail.repeats) {
    if (header && header->circuit == static_cast<uint32_t>(id()) && header->rail == rail.number) {
      hear_lossy(rail, *header);
    }
    return;  // what can't be read counts as lost
  }
  if (!header || header->circuit != static_cast<uint32_t>(id()) || header->rail != rail.number) {
    fail(FailureKind::protocol, fmt::format("{} sent a frame that can't be read ({} bytes, on {})", peer_name(),
                                            received.length_bytes, rail.rail->name()));
    return;
  }
  if (header->kind == FrameKind::hello_ack) {
    rail.is_live = true;
    open();
  } else if (header->kind == FrameKind::taken) {
    hear_taken(rail, header->taken);
  }
}

void SendCircuit::hear_taken(OnRail& rail, uint32_t n_taken) {
  // In the window, or the slots below would be those of other frames.
  if (n_taken - rail.n_taken > rail.n_sent - rail.n_taken) {
    fail(FailureKind::protocol, fmt::format("{} has taken {} frames of {} that were sent on {}", peer_name(), n_taken,
                                            rail.n_sent, rail.rail->name()));
    return;
  }
  // Numbers wrap: hence != and differences, never <.
  for (; rail.n_taken != n_taken; ++rail.n_taken) {
    const uint16_t slot = rail.slots[rail.n_taken % kWindow];
    rail.bytes -= headers_[slot].length;
    // note_repeat_done() frees it.
    if (repeated_[slot].n_reading > 0) [[unlikely]] {
      repeated_[slot].is_taken = true;
    } else {
      free_taken(slot);
    }
    n_silent_ = 0;
  }
}

bool SendCircuit::find_untaken() {
  uint32_t most_behind = 0;
  const auto note = [&](const FrameHeader& header) {
    most_behind = std::max(most_behind, next_sequence_ - header.sequence);
  };
  for (const OnRail& rail : rails_) {
    for (uint32_t n = rail.n_taken; n != rail.n_sent; ++n) {
      note(headers_[rail.slots[n % kWindow]]);
    }
  }
  for (uint32_t i = 0; i < n_again_; ++i) {
    note(headers_[again_[i]]);
  }
  for (const FrameHeader& rest : rest_) {
    note(rest);
  }
  // Only looked for when kMostAhead says so: some dozens of frames, once for hundreds.
  first_untaken_ = next_sequence_ - most_behind;
  return most_behind < kMostAhead;
}

void SendCircuit::free_taken(uint16_t slot) {
  if (clearances_ && pieces_[slot].is_open) {
    note_taken(slot);
  } else {
    free_slots_[n_free_++] = slot;
  }
}

// The rail stays in rails_ until take_ended(): its caller may be in a loop over them.
void SendCircuit::drop(OnRail& rail) {
  if (rail.has_failed) {
    return;
  }
  rail.has_failed = true;
  rail.is_live = false;
  // In ERR its device reads nothing any more. Of UC that is certain only when it has been destroyed: forget_rail().
  if (rail.rail->type() == IBV_QPT_RC) {
    move_on(rail);
  }
}

/// The device reads nothing for this rail any more: what was under way on it may go by others.
void SendCircuit::move_on(OnRail& rail) {
  end_repeats(rail);
  if (clearances_) {
    note_dropped(rail);
  }
  // The oldest comes to lie on top. What is there already is older: it comes from a rail that failed before.
  const uint32_t n = rail.n_sent - rail.n_taken;
  // Room for all: again_ has a place for each slot, and a slot is in one place only.
  std::move_backward(again_.begin(), again_.begin() + n_again_, again_.begin() + n_again_ + n);
  for (uint32_t i = 0; i < n; ++i) {
    again_[i] = rail.slots[(rail.n_sent - 1 - i) % kWindow];
  }
  n_again_ += n;
  rail.n_taken = rail.n_sent;
}

/// The next place for a greeting that no rail has, in turn, so that a device is done with it. Nothing: there are far
/// more rails than a circuit ever has.
std::optional<size_t> SendCircuit::take_greeting() {
  for (size_t i = 0; i < kGreetings; ++i) {
    const size_t place = (next_greeting_ + i) % kGreetings;
    if (std::ranges::find(rails_, place, &OnRail::greeting) == rails_.end()) {
      next_greeting_ = place + 1;
      return place;
    }
  }
  return std::nullopt;
}

// The endpoint's thread alone adds and takes out rails, under the lock.
void SendCircuit::add_rail(uint16_t number, std::unique_ptr<Rail> rail, Path path, uint32_t rate_mbps, bool may_lose) {
  const std::optional<size_t> place = take_greeting();
  OnRail& added = rails_.emplace_back();
  added.greeting = place.value_or(kGreetings);
  added.number = number;
  added.rail = std::move(rail);
  added.path = std::move(path);
  // Shares are by rate, and are divided by it.
  added.rate = rate_mbps == 0 ? 1 : rate_mbps;
  most_rail_ = std::max(most_rail_, number);
  if (!place) {
    (void)added.rail->fail(fmt::format("the circuit has {} others", rails_.size() - 1));
    drop(added);
    return;
  }
  FrameHeader hello;
  hello.kind = FrameKind::hello;
  hello.rail = number;
  hello.circuit = static_cast<uint32_t>(id());
  hello.is_numbered = may_lose;
  if (may_lose) {
    added.repeats = std::make_unique<Repeats>();
    added.repeats->note_greeting(base::now_ns());
  }
  std::byte* const at = greeting_of(added);
  emit(hello, at);
  // Told, so that the completion comes at once: 0 is no slot (note_completed()).
  if (!added.rail->send_told(at, kShortHeaderBytes, 0)) {
    drop(added);
  }
}

void SendCircuit::fail_rail(uint16_t number, const std::string& why) {
  for (OnRail& rail : rails_) {
    if (rail.number == number && !rail.has_failed) {
      (void)rail.rail->fail(why);
      drop(rail);
    }
  }
  pump();
}

void SendCircuit::retire_rail(uint16_t number) {
  for (OnRail& rail : rails_) {
    rail.is_retiring = rail.is_retiring || rail.number == number;
  }
}

// What is returned is destroyed by the caller, without the lock: that may block.
std::vector<SendCircuit::Ended> SendCircuit::take_ended() {
  std::vector<Ended> ended;
  std::erase_if(rails_, [&](OnRail& rail) RINGBOLT_REQUIRES(lock) {
    // Without a Rail: one of UC that was taken before, and is being ended.
    if (!rail.rail || (!rail.has_failed && !(rail.is_retiring && rail.n_sent == rail.n_taken))) {
      return false;
    }
    const bool is_uc = rail.rail->type() == IBV_QPT_UC;
    if (!is_uc) {
      end_repeats(rail);
    }
    rail.has_failed = true;
    rail.is_live = false;
    ended.push_back({rail.number, std::move(rail.path), std::move(rail.rail), rail.was_silent,
                     rail.repeats ? rail.repeats->n_repeated() : 0});
    // It keeps its slots until forget_rail().
    return !is_uc;
  });
  return ended;
}

// After its UC rail was destroyed: now its slots can't be read any more.
void SendCircuit::forget_rail(uint16_t number) {
  std::erase_if(rails_, [&](OnRail& rail) RINGBOLT_REQUIRES(lock) {
    if (rail.number != number || rail.rail) {
      return false;
    }
    move_on(rail);
    return true;
  });
  pump();
}

std::vector<SendCircuit::RailView> SendCircuit::rails() const {
  std::vector<RailView> views;
  for (const OnRail& rail : rails_) {
    if (!rail.has_failed) {
      views.push_back({rail.number, &rail.path, rail.is_live, rail.is_retiring, rail.rail.get()});
    }
  }
  return views;
}

}  // namespace ringbolt::circuit
