// Hot path, but for the beginning and the end of a call.
#include "group/call.h"

#include <fmt/core.h>

#include <array>
#include <string_view>
#include <utility>

#include "group/communicator.h"
#include "group/word.h"

namespace ringbolt::group {
namespace {

/// Every bit of the result depends on every bit of `value`. Source: Steele, Lea and Flood 2014 (SplitMix).
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

std::string_view name_of(collective::Operation operation) {
  switch (operation) {
    case collective::Operation::all_reduce:
      return "all_reduce";
    case collective::Operation::reduce_scatter:
      return "reduce_scatter";
    case collective::Operation::all_gather:
      return "all_gather";
    case collective::Operation::broadcast:
      return "broadcast";
    case collective::Operation::reduce:
      return "reduce";
    case collective::Operation::gather:
      return "gather";
    case collective::Operation::scatter:
      return "scatter";
    case collective::Operation::all_to_all:
      return "all_to_all";
    case collective::Operation::barrier:
      return "barrier";
  }
  return "";
}

}  // namespace

uint32_t CallShape::signature() const {
  const uint64_t words[6] = {static_cast<uint64_t>(is_message) | static_cast<uint64_t>(operation) << 8 |
                                 static_cast<uint64_t>(type) << 16 | static_cast<uint64_t>(reduction) << 24 |
                                 static_cast<uint64_t>(is_reduction) << 32 |
                                 static_cast<uint64_t>(needs_rank_order) << 33,
                             root,
                             bytes,
                             shares_crc,
                             algorithm_crc,
                             schedule_crc};
  // No CRC: one of bytes and of their own CRC would be the same for all bytes.
  uint64_t hash = 0;
  for (const uint64_t word : words) {
    hash = mixed(hash ^ word);
  }
  return signature_of(phase, static_cast<uint32_t>(hash >> 32));
}

std::string CallShape::text() const {
  const uint64_t count = bytes / collective::bytes_of(type);
  if (is_message) {
    return fmt::format("a message of {} {}", count, collective::text(type));
  }
  if (operation == collective::Operation::barrier) {
    return "barrier";
  }
  if (phase == Phase::counting) {
    return "all_to_allv, its counts";
  }
  if (phase == Phase::counted) {  // of how many is known to nobody before all have counted
    return fmt::format("all_to_allv of {}", collective::text(type));
  }
  std::string words = fmt::format("{} of {} {}", name_of(operation), count, collective::text(type));
  if (is_reduction) {
    words += fmt::format(" ({}{})", collective::text(reduction), needs_rank_order ? "" : ", in any order");
  }
  if (operation == collective::Operation::broadcast || operation == collective::Operation::reduce ||
      operation == collective::Operation::gather || operation == collective::Operation::scatter) {
    words += fmt::format(", root {}", root);
  }
  return words;
}

Call::Call(Communicator& communicator, const CallId& id, const CallShape& shape, uint32_t signature,
           uint64_t deadline_ns)
    : communicator_(communicator), id_(id), shape_(shape), signature_(signature), deadline_ns_(deadline_ns) {}

Call::~Call() = default;

void Call::renew(const CallId& id) {
  id_ = id;
  deadline_ns_ = UINT64_MAX;
  is_disputed = false;
  is_held_ = true;
  status_ = {};
  // Relaxed: nobody but its caller has it, who holds the lock.
  is_done_.store(false, std::memory_order_relaxed);
}

void Call::prepare(std::unique_ptr<collective::Execution> execution, const collective::Operands& operands) {
  execution_ = std::move(execution);
  operands_ = operands;
}

void Call::let_go() {
  is_held_ = false;
  execution_->start(id_.number, operands_, *this);
}

void Call::go_on(collective::ShortExecution& from, const collective::Operands& operands) {
  prepare(std::make_unique<collective::Execution>(from.program()), operands);
  is_held_ = false;
  from.hand_over(*execution_);
  advance();
}

void Call::advance() {
  if (!is_held_ && !is_done()) {
    execution_->advance();
    if (execution_->is_done()) {
      finish({});
    }
  }
}

void Call::finish(Status status) {
  if (is_done()) {
    return;
  }
  // Chunks that it holds go back to the engine. A held one has none: those that came early are with the communicator.
  if (!is_held_) {
    execution_->drop();
  }
  // Before is_done_: whoever sees that without the lock reads this.
  status_ = std::move(status);
  is_done_.store(true, std::memory_order_release);
  // A caller who waits polls by itself; the descriptor is for those who don't.
  if (!is_waited) {
    communicator_.tell_progress();
  }
}

std::optional<collective::PointToPoint::Slot> Call::take_slot(uint32_t length_bytes) {
  const auto slot = communicator_.engine().take_slot(length_bytes);
  return slot ? std::optional<Slot>({slot->bytes, slot->id}) : std::nullopt;
}

void Call::fill(Slot slot, const std::byte* from, uint32_t length_bytes) {
  communicator_.engine().fill({slot.bytes, slot.id}, from, length_bytes);
}

engine::Address Call::address(uint32_t peer, const collective::ChunkTag& tag) const {
  engine::Address address;
  address.destination = communicator_.member(peer);
  address.group = id_.is_message ? static_cast<uint16_t>(communicator_.id() | kMessageGroup) : communicator_.id();
  address.transfer = static_cast<uint16_t>(tag.transfer);
  address.call = tag.call;
  address.chunk = tag.chunk;
  address.signature = signature_;
  return address;
}

engine::Address Call::chunk_address(uint32_t peer, const collective::ChunkTag& tag) {
  engine::Address to = address(peer, tag);
  if (follows_ended_) {
    to.ended_before = true;
    communicator_.note_told(peer, id_.number);
  }
  return to;
}

void Call::send(Slot slot, uint32_t length_bytes, uint32_t peer, std::span<const uint32_t> via,
                const collective::ChunkTag& tag) {
  engine::Address to = chunk_address(peer, tag);
  std::array<uint32_t, engine::kMostVia> ranks;
  // A longer way than a header has room for is left to the engine, which knows one of its own.
  if (!via.empty() && via.size() <= ranks.size()) {
    for (size_t i = 0; i < via.size(); ++i) {
      ranks[i] = communicator_.member(via[i]);
    }
    to.via = {ranks.data(), via.size()};
  }
  communicator_.engine().send(slot.id, length_bytes, to);
}

bool Call::send_copy(const std::byte* from, uint32_t length_bytes, uint32_t peer, std::span<const uint32_t> via,
                     const collective::ChunkTag& tag) {
  if (!via.empty()) {
    return PointToPoint::send_copy(from, length_bytes, peer, via, tag);
  }
  engine::Engine& engine = communicator_.engine();
  const auto slot = engine.take_slot(length_bytes);
  if (!slot) {
    return false;
  }
  if (length_bytes > 0) {
    engine.fill(*slot, from, length_bytes);
  }
  engine.send(slot->id, length_bytes, chunk_address(peer, tag));
  return true;
}

void Call::cancel(Slot slot) { communicator_.engine().cancel(slot.id); }

void Call::tell_used(uint32_t peer, const collective::ChunkTag& tag) {
  const std::byte word[1] = {static_cast<std::byte>(WordKind::used)};
  communicator_.engine().send_word(word, address(peer, tag));
}

void Call::release(uint64_t parcel) { communicator_.engine().release(parcel); }

collective::PointToPoint::Place Call::settle(uint64_t parcel, std::span<const std::byte> bytes) {
  const engine::Receipt receipt = communicator_.engine().settle({parcel, bytes});
  return {receipt.id, receipt.bytes};
}

}  // namespace ringbolt::group
