#include "mesh/courier.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/little_endian.h"
#include "engine/slots.h"
#include "mesh/word.h"

namespace ringbolt::mesh {
namespace {

constexpr size_t kLengthBytes = 4;  // before each packet
/// A window is reopened in quarters, so that not every chunk is answered by a word of its own.
constexpr uint32_t kTakenPerWord = Courier::kWindowChunks / 4;
static_assert(Courier::kMostPacketBytes + kLengthBytes <= engine::kLargePayloadBytes);

}  // namespace

Courier::Courier(engine::Engine& engine, uint32_t rank, uint32_t n_ranks, Sink& sink)
    : engine_(engine), rank_(rank), sink_(sink), peers_(n_ranks) {}

bool Courier::send(uint32_t rank, std::span<const std::byte> packet) {
  RINGBOLT_ASSERT(rank != rank_ && rank < peers_.size() && packet.size() <= kMostPacketBytes);
  Peer& peer = peers_[rank];
  if (peer.is_gone) {
    ++counts_.dropped_gone;
    return false;
  }
  const size_t bytes = kLengthBytes + packet.size();
  if (peer.waiting_bytes + bytes > kMostWaitingBytes) {
    ++counts_.dropped_full;
    return false;
  }
  if (peer.waiting.empty() || peer.waiting.back().size() + bytes > engine::kLargePayloadBytes) {
    peer.waiting.emplace_back();
  }
  std::vector<std::byte>& chunk = peer.waiting.back();
  const size_t at = chunk.size();
  chunk.resize(at + bytes);
  base::put_le(std::span(chunk), at, static_cast<uint32_t>(packet.size()));
  std::copy(packet.begin(), packet.end(), chunk.begin() + static_cast<ptrdiff_t>(at + kLengthBytes));
  peer.waiting_bytes += bytes;
  ++counts_.packets_out;
  counts_.bytes_out += packet.size();
  return true;
}

void Courier::flush() {
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].waiting.empty()) {
      flush(rank);
    }
  }
}

void Courier::flush(uint32_t rank) {
  Peer& peer = peers_[rank];
  while (!peer.waiting.empty() && peer.next_out - peer.taken_by_it < kWindowChunks) {
    const std::vector<std::byte>& chunk = peer.waiting.front();
    const auto length = static_cast<uint32_t>(chunk.size());
    const std::optional<engine::ChunkSlots::Slot> slot = engine_.take_slot(length);
    // end_turn() tries again.
    if (!slot) {
      return;
    }
    std::memcpy(slot->bytes, chunk.data(), length);
    engine::Address address;
    address.destination = rank;
    address.group = kCourierChannels.first;
    address.chunk = peer.next_out++;
    engine_.send(slot->id, length, address);
    peer.waiting_bytes -= length;
    peer.waiting.pop_front();
  }
}

void Courier::on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  Peer& peer = peers_[header.source];
  // One that came before wraps to a large difference, too.
  if (header.chunk - peer.next_in >= kWindowChunks || peer.is_gone) {
    engine_.release(receipt.id);  // beyond its window: not one of ours
    return;
  }
  if (header.chunk != peer.next_in) {
    peer.early.try_emplace(header.chunk, receipt.bytes.begin(), receipt.bytes.end());
    engine_.release(receipt.id);
    return;
  }
  // Before it is released: the packets are views of the engine's memory.
  hand_over(header.source, receipt.bytes);
  engine_.release(receipt.id);
  ++peer.next_in;
  for (auto next = peer.early.find(peer.next_in); next != peer.early.end(); next = peer.early.find(peer.next_in)) {
    hand_over(header.source, next->second);
    peer.early.erase(next);
    ++peer.next_in;
  }
  if (peer.next_in - peer.told_taken >= kTakenPerWord) {
    tell_taken(header.source);
  }
}

/// Lengths are the peer's word: what goes beyond the chunk ends it, and what came before stays delivered.
void Courier::hand_over(uint32_t source, std::span<const std::byte> chunk) {
  has_delivered_ = true;
  while (chunk.size() >= kLengthBytes) {
    const auto length = base::get_le<uint32_t>(chunk, 0);
    chunk = chunk.subspan(kLengthBytes);
    if (length > chunk.size()) {
      ++counts_.malformed;
      return;
    }
    ++counts_.packets_in;
    counts_.bytes_in += length;
    sink_.on_packet(source, chunk.first(length));
    chunk = chunk.subspan(length);
  }
  counts_.malformed += chunk.empty() ? 0U : 1U;
}

void Courier::tell_taken(uint32_t rank) {
  Peer& peer = peers_[rank];
  engine::Address address;
  address.destination = rank;
  address.group = kCourierChannels.first;
  address.chunk = peer.next_in;
  engine_.send_word(emit(Word{WordKind::used, 0, {}}), address);
  peer.told_taken = peer.next_in;
}

/// Every word that is one counts as "used": couriers say nothing else.
void Courier::on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) {
  if (!parse_word(bytes)) {
    return;
  }
  Peer& peer = peers_[header.source];
  const uint32_t ahead = header.chunk - peer.taken_by_it;
  if (ahead <= peer.next_out - peer.taken_by_it) {  // words may overtake each other
    peer.taken_by_it = header.chunk;
  }
}

void Courier::give_up(uint32_t rank) {
  Peer& peer = peers_[rank];
  peer.is_gone = true;
  peer.waiting.clear();
  peer.waiting_bytes = 0;
  peer.early.clear();
}

void Courier::end_turn() {
  flush();
  if (std::exchange(has_delivered_, false)) {
    sink_.on_end_of_packets();
  }
}

}  // namespace ringbolt::mesh
