// Hot path: a chunk is sent without allocation, lock or system call while there is credit; queues allocate.
#include "engine/engine.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/copy.h"
#include "base/crc.h"

namespace ringbolt::engine {

Engine::Engine(EnginePlan plan, std::vector<std::unique_ptr<Device>>& devices,
               std::vector<std::unique_ptr<Cable>>& cables, const ChunkSlots::Rows& slots, std::span<std::byte> slab)
    : plan_(std::move(plan)),
      devices_(devices),
      cables_(cables),
      slab_(slab),
      slots_(slots, slab),
      flows_(plan_.n_ranks),
      neighbours_(plan_.n_ranks),
      has_failed_(cables.size()),
      paths_(plan_.rank, plan_.n_ranks, plan_.fabric) {
  for (const auto& cable : cables_) {
    neighbours_[cable->plan().peer].rails.push_back(cable.get());
  }
  for (size_t rank = 0; rank < neighbours_.size(); ++rank) {
    const std::vector<Cable*>& rails = neighbours_[rank].rails;
    flows_[rank].only_rail = rails.size() == 1 ? rails.front() : nullptr;
    for (Cable* rail : rails) {
      if (rails.size() > 1) {
        rail->be_rail();
      }
    }
  }
}

Engine::~Engine() {
  // Another thread may be in own() without the lock, for as long as it takes to write a few lines.
  while (is_owning_.load(std::memory_order_acquire)) {
    sched_yield();
  }
}

std::span<std::byte> Engine::set_slot_aside() {
  if (last_in_place_bytes_ > kMostOwnedBytes || is_owning_.load(std::memory_order_acquire) || slots_.run_low()) {
    return {};
  }
  if (aside_ && ChunkSlots::size_of(aside_->id) == ChunkSlots::size_for(last_in_place_bytes_)) {
    return {};  // no chunk has been sent since
  }
  if (aside_) {
    slots_.free(aside_->id);
  }
  // There is one: run_low() says so of half of each row, which is more than is kept for words.
  aside_ = slots_.take(last_in_place_bytes_, kSlotsForWords);
  is_owning_.store(true, std::memory_order_relaxed);
  return {aside_->bytes - kHeaderBytes, kHeaderBytes + last_in_place_bytes_};
}

void Engine::own(std::span<std::byte> slot) {
  constexpr size_t kLineBytes = 64;
  for (size_t at = 0; at < slot.size(); at += kLineBytes) {
    *static_cast<volatile std::byte*>(slot.data() + at) = std::byte{0};
  }
  is_owning_.store(false, std::memory_order_release);
}

void Engine::choose_path(ChunkHeader& header, std::span<const uint8_t> wanted) const {
  // Where none is open the path is empty: it waits in the queue of a rank without cables, until set_cable_up() clears
  // that.
  if (!paths_.is_open(wanted, header.destination)) {
    wanted = paths_.via(header.destination);
  }
  header.hops_done = 0;
  header.n_via = static_cast<uint8_t>(wanted.size());
  header.via = {};
  std::copy(wanted.begin(), wanted.end(), header.via.begin());
}

/// Whether a neighbour reads all that goes to it straight where it has been written, as far as it has said.
bool Engine::is_read_in_place(uint32_t rank) const {
  const std::vector<Cable*>& rails = neighbours_[rank].rails;
  return !rails.empty() &&
         std::all_of(rails.begin(), rails.end(), [](const Cable* rail) { return rail->is_read_in_place(); });
}

void Engine::fill(const ChunkSlots::Slot& slot, const std::byte* from, uint32_t length_bytes) {
  const bool is_read_by_others =
      length_bytes >= base::AdaptiveCopy::kLeastBytes &&
      std::any_of(cables_.begin(), cables_.end(), [](const auto& cable) { return cable->is_read_in_place(); });
  if (is_read_by_others) {
    copier_.copy(slot.bytes, from, length_bytes);
  } else {
    base::copy(slot.bytes, from, length_bytes);  // this core reads it next
  }
}

/// What the neighbour reads where it has been written crosses nothing that could damage it: it has a checksum only if
/// every chunk has one.
void Engine::protect(ChunkHeader& header, size_t offset) {
  const bool stays =
      header.n_via == 0 && header.length_bytes >= kLeastInPlaceBytes && is_read_in_place(header.destination);
  last_in_place_bytes_ = stays ? header.length_bytes : UINT32_MAX;
  header.has_payload_crc = plan_.checksums == Checksums::every || (plan_.checksums == Checksums::carried && !stays);
  if (header.has_payload_crc && header.length_bytes > 0) {  // that of nothing is 0
    header.payload_crc = base::crc32c(0, slab_.subspan(offset + kHeaderBytes, header.length_bytes));
  }
}

void Engine::send_sequenced(Kind kind, uint32_t slot, uint32_t length_bytes, const Address& address) {
  Flow& flow = flows_[address.destination];
  if (flow.is_given_up) {
    slots_.free(slot);
    return;
  }
  RINGBOLT_ASSERT(address.destination != plan_.rank && address.via.size() <= kMostVia);
  Origin origin;
  origin.offset = slots_.offset_of(slot);
  origin.send_slot = slot;
  // Made where it is kept: a copy would wait until all that was written before, the payload too, has left the core.
  Unacknowledged& waiting = flow.unacknowledged.emplace_back();
  waiting.slot = slot;
  waiting.sent_ns = now_ns_;
  ChunkHeader& header = waiting.header;
  header.kind = kind;
  header.length_bytes = length_bytes;
  header.session = plan_.session;
  header.source = static_cast<uint8_t>(plan_.rank);
  header.destination = static_cast<uint8_t>(address.destination);
  header.sequence = flow.next_sequence++;
  header.ack = flow.received.expected();
  header.group = address.group;
  header.transfer = address.transfer;
  header.call = address.call;
  header.chunk = address.chunk;
  header.signature = address.signature;
  header.wants_ack = slots_.run_low();
  header.ended_before = address.ended_before;
  std::array<uint8_t, kMostVia> via;
  for (size_t i = 0; i < address.via.size(); ++i) {
    via[i] = static_cast<uint8_t>(address.via[i]);
  }
  choose_path(header, {via.data(), address.via.size()});
  protect(header, origin.offset);
  flow.n_to_acknowledge = 0;
  ++counts_.chunks_sent;
  submit(header, origin, header.n_via > 0 ? header.via[0] : address.destination, ChunkSlots::size_of(slot), 0);
}

/// A chunk to a neighbour over the only cable there, if nothing stands in its way: what send_sequenced() and all that
/// it calls would do, with the header made in registers. False: something does; nothing has been done.
bool Engine::send_at_once(uint32_t slot, uint32_t length_bytes, const Address& address) {
  Flow& flow = flows_[address.destination];
  Cable* const cable = flow.only_rail;
  const Size size = ChunkSlots::size_of(slot);
  // A cable that is in use is up, so that the path is open.
  if (cable == nullptr || !address.via.empty() || flow.is_given_up || !cable->is_in_use() ||
      !cable->may_send(size, 0) || !neighbours_[address.destination].queue.is_empty()) {
    return false;
  }
  const size_t offset = slots_.offset_of(slot);
  const std::span<std::byte> message = slab_.subspan(offset, kHeaderBytes + length_bytes);
  const bool stays = length_bytes >= kLeastInPlaceBytes && cable->is_read_in_place();  // see protect()
  last_in_place_bytes_ = stays ? length_bytes : UINT32_MAX;
  Unacknowledged& waiting = flow.unacknowledged.append();  // which may throw; numbers and credits can't be taken back
  const Cable::Told told = cable->tell(size, 0);
  DirectHeader header;
  header.has_payload_crc = plan_.checksums == Checksums::every || (plan_.checksums == Checksums::carried && !stays);
  header.wants_ack = slots_.run_low();
  header.reads_in_place = cable->reads_in_place();
  header.ended_before = address.ended_before;
  header.payload_crc = header.has_payload_crc && length_bytes > 0 ? base::crc32c(0, message.subspan(kHeaderBytes)) : 0;
  header.length_bytes = length_bytes;
  header.session = plan_.session;
  header.source = static_cast<uint8_t>(plan_.rank);
  header.destination = static_cast<uint8_t>(address.destination);
  header.sequence = flow.next_sequence++;
  header.ack = flow.received.expected();
  header.group = address.group;
  header.transfer = address.transfer;
  header.call = address.call;
  header.chunk = address.chunk;
  header.signature = address.signature;
  header.incarnation = cable->incarnation();
  header.cable_number = told.cable_number;
  header.credit_class = told.credit_class;
  header.freed_small = told.freed_small;
  header.freed_large = told.freed_large;
  waiting.slot = slot;
  waiting.sent_ns = now_ns_;
  waiting.n_tries = 0;
  waiting.is_due = false;
  waiting.first_slot = kNoSlot;
  emit(header, message.first<kHeaderBytes>(), waiting.header);
  flow.n_to_acknowledge = 0;
  ++counts_.chunks_sent;
  RequestId id;
  id.slot = static_cast<uint16_t>(slot);
  if (cable->post(size, offset, static_cast<uint32_t>(message.size()), header.wants_ack, id)) [[likely]] {
    slots_.note_sent(slot, *cable);
  } else {
    Origin origin;
    origin.offset = offset;
    origin.send_slot = slot;
    enqueue(neighbours_[address.destination], waiting.header, origin, size, 0);
  }
  return true;
}

/// Compiled into one, with the calls that it makes: short chunks are many.
[[gnu::flatten]] void Engine::send(uint32_t slot, uint32_t length_bytes, const Address& address) {
  if (!send_at_once(slot, length_bytes, address)) [[unlikely]] {
    send_by_any_way(slot, length_bytes, address);
  }
}

[[gnu::flatten]] void Engine::send_by_any_way(uint32_t slot, uint32_t length_bytes, const Address& address) {
  send_sequenced(Kind::data, slot, length_bytes, address);
}

void Engine::send_word(std::span<const std::byte> bytes, const Address& address) {
  RINGBOLT_ASSERT(bytes.size() <= kSmallPayloadBytes);
  const auto slot = pending_words_.empty() ? slots_.take(static_cast<uint32_t>(bytes.size()), 0) : std::nullopt;
  if (!slot) {
    pending_words_.push_back({{bytes.begin(), bytes.end()}, address});
    pending_words_.back().address.via = {};
    return;
  }
  std::copy(bytes.begin(), bytes.end(), slot->bytes);
  send_sequenced(Kind::word, slot->id, static_cast<uint32_t>(bytes.size()), address);
}

void Engine::send_pending_words() {
  while (!pending_words_.empty()) {
    PendingWord& word = pending_words_.front();
    const auto slot = slots_.take(static_cast<uint32_t>(word.bytes.size()), 0);
    if (!slot) {
      return;
    }
    std::copy(word.bytes.begin(), word.bytes.end(), slot->bytes);
    send_sequenced(Kind::word, slot->id, static_cast<uint32_t>(word.bytes.size()), word.address);
    pending_words_.pop_front();
  }
}

bool Engine::send_beat(uint32_t cable, std::span<const std::byte> bytes) {
  return send_on_cable(cable, emit(cables_[cable]->report()), bytes);
}

bool Engine::send_on_cable(uint32_t cable, std::span<const std::byte> first, std::span<const std::byte> second) {
  Cable& to = *cables_[cable];
  if (!to.may_send(Size::small, kControlClass)) {
    return false;
  }
  const size_t length = first.size() + second.size();
  const auto slot = slots_.take(static_cast<uint32_t>(length), 0);
  if (!slot) {
    return false;
  }
  std::copy(second.begin(), second.end(), std::copy(first.begin(), first.end(), slot->bytes));
  ChunkHeader header;
  header.kind = Kind::beat;
  header.length_bytes = static_cast<uint32_t>(length);
  header.session = plan_.session;
  header.source = static_cast<uint8_t>(plan_.rank);
  header.destination = static_cast<uint8_t>(to.plan().peer);
  header.has_payload_crc = true;
  header.payload_crc = base::crc32c(0, {slot->bytes, length});
  RequestId id;
  id.is_unsequenced = true;
  id.slot = static_cast<uint16_t>(slot->id);
  if (!to.send(Size::small, kControlClass, header, slots_.offset_of(slot->id), id)) {
    slots_.free(slot->id);
    return false;
  }
  return true;
}

void Engine::tell_credits() {
  for (uint32_t i = 0; i < cables_.size(); ++i) {
    // Each tells of one class, in turn; few are in use.
    for (uint32_t n = 0; n < kClasses && cables_[i]->has_credits_to_tell(); ++n) {
      if (!send_on_cable(i, {}, {})) {
        break;
      }
    }
  }
}

/// Without memory or a way it is tried again at the next tick, or asked for by the peer's repetition.
void Engine::send_ack(uint32_t rank) {
  Flow& flow = flows_[rank];
  flow.n_to_acknowledge = 0;
  if (!paths_.is_reachable(rank)) {
    return;  // it will ask again by sending again
  }
  const auto slot = slots_.take(0, 0);
  if (!slot) {
    flow.n_to_acknowledge = 1;
    return;
  }
  ++counts_.acks_sent;
  ChunkHeader header;
  header.kind = Kind::ack;
  header.session = plan_.session;
  header.source = static_cast<uint8_t>(plan_.rank);
  header.destination = static_cast<uint8_t>(rank);
  header.ack = flow.received.expected();
  choose_path(header, {});
  Origin origin;
  origin.offset = slots_.offset_of(slot->id);
  origin.send_slot = slot->id;
  origin.is_unsequenced = true;
  submit(header, origin, header.n_via > 0 ? header.via[0] : rank, Size::small, 0);
}

void Engine::submit(ChunkHeader& header, const Origin& origin, uint32_t next_rank, Size size, uint32_t buffer_class) {
  Neighbour& neighbour = neighbours_[next_rank];
  if (neighbour.queue.is_empty() && try_send(neighbour, header, origin, size, buffer_class)) {
    return;
  }
  enqueue(neighbour, header, origin, size, buffer_class);
}

void Engine::enqueue(Neighbour& neighbour, const ChunkHeader& header, const Origin& origin, Size size,
                     uint32_t buffer_class) {
  if (!origin.is_relayed) {
    slots_.note_queued(origin.send_slot);
  }
  neighbour.queue.add(header.source, buffer_class, size == Size::large,
                      static_cast<uint32_t>(kHeaderBytes) + header.length_bytes, {header, origin});
}

bool Engine::try_send(Neighbour& neighbour, ChunkHeader& header, const Origin& origin, Size size,
                      uint32_t buffer_class) {
  if (!origin.is_relayed && slots_.is_needless(origin.send_slot)) {
    slots_.note_unqueued(origin.send_slot);  // a repetition that has become needless while it waited
    slots_.retire(origin.send_slot);
    return true;
  }
  // Rails take turns by their rates; one that has no room or credit, since it is slower than was thought, is passed
  // over.
  const bool take_turns = neighbour.rails.size() > 1;
  Cable* best = nullptr;
  for (Cable* rail : neighbour.rails) {
    if (rail->is_in_use() && rail->may_send(size, buffer_class) && (best == nullptr || rail->turn < best->turn)) {
      best = rail;
    }
  }
  if (best == nullptr) {
    return false;
  }
  RequestId id;
  id.is_relayed = origin.is_relayed;
  id.from_cable = origin.from_cable;
  id.slot = origin.is_relayed ? origin.slot : static_cast<uint16_t>(origin.send_slot);
  id.is_unsequenced = origin.is_unsequenced;
  if (!best->send(size, buffer_class, header, origin.offset, id)) {
    return false;
  }
  if (take_turns) {  // one that has been idle does not catch up
    // Start-time fairness among rails, as OutputQueue has it among ranks.
    neighbour.turn = std::max(neighbour.turn, best->turn);
    best->turn = neighbour.turn + static_cast<double>(kHeaderBytes + header.length_bytes) / best->plan().rate;
  }
  if (!origin.is_relayed) {
    slots_.note_sent(origin.send_slot, *best);
  }
  return true;
}

void Engine::serve(Neighbour& neighbour) {
  neighbour.queue.serve([&](Entry& entry, uint32_t buffer_class, bool is_large) {
    const Size size = is_large ? Size::large : Size::small;
    return try_send(neighbour, entry.header, entry.origin, size, buffer_class);
  });
}

bool Engine::has_queued() const {
  return !pending_words_.empty() || std::any_of(cables_.begin(), cables_.end(), [&](const auto& cable) {
    return !neighbours_[cable->plan().peer].queue.is_empty();
  });
}

void Engine::post_freed() {
  for (const auto& cable : cables_) {
    cable->post_freed();
  }
}

/// What follows from completions besides what they bring.
void Engine::attend() {
  n_unattended_ = 0;
  for (const auto& cable : cables_) {
    cable->post_freed_if_many();  // a few wait for more, until the next tick
  }
  notice_failures();
  slots_.free_retired();
  for (Neighbour& neighbour : neighbours_) {
    if (!neighbour.queue.is_empty()) {
      serve(neighbour);
    }
  }
  send_pending_words();
  tell_credits();
  for (const uint32_t rank : ranks_to_acknowledge_) {
    if (flows_[rank].n_to_acknowledge >= kReceivedPerAck) {
      send_ack(rank);
    }
  }
  ranks_to_acknowledge_.clear();
}

bool Engine::progress(uint64_t now_ns) {
  now_ns = now_ns_ = std::max(now_ns, now_ns_);  // several threads come, each with the time at which it has looked
  bool has_done = false;
  is_taking_ = true;
  std::array<ibv_wc, 32> completions;
  for (const auto& device : devices_) {
    const auto taken = device->cq().poll(completions);
    if (!taken) [[unlikely]] {
      fail_device(*device, taken.error().value);
      continue;
    }
    for (size_t i = 0; i < *taken; ++i) {
      take_completion(completions[i]);
    }
    has_done = has_done || *taken > 0;
  }
  is_taking_ = false;
  // Who waited for what has come goes first: the rest is done when nothing comes, or has come several times in a row.
  n_unattended_ += has_done ? 1 : 0;
  if (n_unattended_ >= kMostUnattended || (n_unattended_ > 0 && !has_done)) {
    attend();
  }
  if (now_ns >= next_tick_ns_) {
    tick();
  }
  return has_done;
}

}  // namespace ringbolt::engine
