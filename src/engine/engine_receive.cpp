// Hot path, like engine.cpp.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/copy.h"
#include "engine/engine.h"

namespace ringbolt::engine {
namespace {

// Both bits are those of RequestId::from_cable, which a receive leaves 0.
// A receipt's id: the wr_id of a receive, or with the highest bit that of a block of memory. With the next one the
// message lies elsewhere.
constexpr uint64_t kIsBlock = uint64_t{1} << 63;
constexpr uint64_t kIsInPlace = uint64_t{1} << 62;

}  // namespace

/// Compiled into one, as send() is.
[[gnu::flatten]] void Engine::take_completion(const ibv_wc& completion) {
  const RequestId id = parse_request(completion.wr_id);
  if (!is_ours(id)) [[unlikely]] {
    ++counts_.strangers;
    return;
  }
  Cable& cable = *cables_[id.cable];
  if (!cable.is_current(id)) [[unlikely]] {
    return;  // its cable has been connected anew since, and took what it held
  }
  if (id.is_receive) {
    cable.hold(id.size, id.slot);
  } else {
    cable.hear_done(id);
    if (id.is_relayed) {
      cables_[id.from_cable]->free(id.size, id.slot);
    } else if (id.is_unsequenced) {
      slots_.free(id.slot);
    }
  }
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    if (id.is_receive) {
      cable.drop(id.size, id.slot);
    }
    fail_completion(cable, id, completion.status);
    return;
  }
  if (id.is_receive) {
    take_message(cable, completion.wr_id, id, completion.byte_len, cable.place_of(completion));
  }
}

void Engine::fail_completion(Cable& cable, const RequestId& id, ibv_wc_status status) {
  cable.fail(fmt::format("{}: {} completed with status {}", cable.plan().name, id.is_receive ? "a receive" : "a send",
                         static_cast<int>(status)));
}

/// A completion names a request that there is: it comes from a library that may be anybody's.
bool Engine::is_ours(const RequestId& id) const {
  if (id.cable >= cables_.size()) {
    return false;
  }
  if (id.is_receive) {
    return cables_[id.cable]->has_receive(id.size, id.slot);
  }
  return id.is_relayed ? id.from_cable < cables_.size() && cables_[id.from_cable]->has_receive(id.size, id.slot)
                       : !id.is_unsequenced || id.slot < ChunkSlots::kSmall + ChunkSlots::kLarge;
}

void Engine::take_message(Cable& cable, uint64_t wr_id, const RequestId& id, uint32_t length_bytes,
                          const std::byte* place) {
  bool is_in_place = place != nullptr;
  std::span<const std::byte> message = cable.message(id.size, id.slot, length_bytes, place);
  // Of a message in place the head lies in the receive, where its sender can't change it.
  const auto header = parse_header(cable.head(id.size, id.slot, length_bytes), message.size());
  if (!header) [[unlikely]] {
    ++counts_.bad_headers;  // its number will be missed, and its receive counted as free, when the next one comes
    cable.repost(id.size, id.slot);
    return;
  }
  if (header->session != plan_.session || header->source >= plan_.n_ranks || header->source == plan_.rank ||
      header->destination >= plan_.n_ranks || !cable.hear(id.size, id.slot, *header)) [[unlikely]] {
    ++counts_.strangers;
    cable.repost(id.size, id.slot);
    return;
  }
  if (!is_in_place && plan_.checksums != Checksums::none && !header->has_payload_crc &&
      header->length_bytes >= kLeastInPlaceBytes) [[unlikely]] {
    // Its sender took it for one that is read in place; but somebody has made a copy, who may have damaged it. It will
    // be sent again, with a checksum: from now on this end says that it copies.
    ++counts_.unprotected;
    cable.copy_all();
    cable.free(id.size, id.slot);
    return;
  }
  const bool is_hop = header->kind == Kind::beat;
  if (is_in_place && (header->kind != Kind::data || header->destination != plan_.rank)) {
    message = cable.fetch(id.size, id.slot, message);
    is_in_place = false;
  }
  if (!has_sound_payload(*header, message)) [[unlikely]] {
    ++counts_.bad_payloads;
    cable.free(id.size, id.slot);
    return;
  }
  if (is_hop) {
    take_beat(cable, id.cable, message.subspan(kHeaderBytes, header->length_bytes));
    cable.free(id.size, id.slot);
  } else if (header->destination == plan_.rank) {
    deliver(cable, wr_id, id, *header, message, is_in_place);
  } else {
    relay(cable, id, *header);
  }
}

void Engine::take_beat(Cable& cable, uint32_t index, std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return;  // it has brought credits, in its header
  }
  const auto report = parse_report(bytes);
  if (!report || !cable.hear_report(*report, now_ns_)) {
    cable.fail(fmt::format("{}: more messages are lost than can be told", cable.plan().name));
    return;
  }
  receiver_->on_beat(index, bytes.subspan(kReportBytes));
}

/// One more message of that rank has been received. Urgent: the sender waits for the word.
void Engine::owe_ack(uint32_t rank, bool is_urgent) {
  Flow& flow = flows_[rank];
  if (flow.n_to_acknowledge++ == 0) {
    flow.to_acknowledge_since_ns = now_ns_;
  }
  if (is_urgent) {
    flow.n_to_acknowledge = kReceivedPerAck;
  }
  if (flow.n_to_acknowledge >= kReceivedPerAck) {
    ranks_to_acknowledge_.push_back(rank);
    n_unattended_ = std::max(n_unattended_, 1U);
  }
}

void Engine::deliver(Cable& cable, uint64_t wr_id, const RequestId& id, const ChunkHeader& header,
                     std::span<const std::byte> message, bool is_in_place) {
  Flow& flow = flows_[header.source];
  hear_ack(header.source, header.ack);
  if (header.kind == Kind::ack) {
    cable.free(id.size, id.slot);
    return;
  }
  if (flow.received.judge(header.sequence) != ReceivedNumbers::Verdict::fresh) [[unlikely]] {
    owe_ack(header.source, true);
    ++counts_.duplicates;
    cable.free(id.size, id.slot);
    return;
  }
  ++counts_.chunks_received;
  const std::span<const std::byte> payload = message.subspan(kHeaderBytes, header.length_bytes);
  if (header.kind == Kind::word) {
    receiver_->on_word(header, payload);
    cable.free(id.size, id.slot);
  } else {
    counts_.read_in_place += is_in_place ? 1 : 0;
    const Receipt receipt{wr_id | (is_in_place ? kIsInPlace : 0), payload};
    const bool is_awaited = awaited_.by != nullptr && header.call == awaited_.call && header.group == awaited_.group;
    if (!is_awaited || !awaited_.by->on_awaited(header, receipt)) {
      receiver_->on_chunk(header, receipt);
    }
  }
  // Only now: what the receiver has sent meanwhile must not tell the sender that its memory is free.
  flow.received.take(header.sequence);
  if (!flow.is_given_up) {
    owe_ack(header.source, header.wants_ack);
  }
}

void Engine::release(uint64_t receipt) {
  if ((receipt & kIsBlock) != 0) {
    const auto index = static_cast<size_t>(receipt & ~kIsBlock);
    free_blocks_.push_back(index);
    return;
  }
  const RequestId id = parse_request(receipt & ~kIsInPlace);
  cables_[id.cable]->free(id.size, id.slot);
  if (!is_taking_) {
    n_unattended_ = std::max(n_unattended_, 1U);
  }
}

Receipt Engine::settle(const Receipt& receipt) {
  if ((receipt.id & kIsBlock) != 0) {
    return receipt;
  }
  const bool is_in_place = (receipt.id & kIsInPlace) != 0;
  const RequestId id = parse_request(receipt.id & ~kIsInPlace);
  Cable& cable = *cables_[id.cable];
  const uint32_t n_receives = id.size == Size::small ? kSmallReceives : kLargeReceives;
  if (cable.n_held(id.size) <= n_receives / 4) {
    return is_in_place ? Receipt{receipt.id & ~kIsInPlace, cable.fetch(id.size, id.slot, receipt.bytes)} : receipt;
  }
  if (free_blocks_.empty()) {
    free_blocks_.push_back(blocks_.size());
    blocks_.emplace_back();
  }
  const size_t index = free_blocks_.back();
  free_blocks_.pop_back();
  std::vector<std::byte>& block = blocks_[index];
  block.resize(std::max(block.size(), receipt.bytes.size()));
  if (!receipt.bytes.empty()) {  // else the block may have no memory yet
    base::copy(block.data(), receipt.bytes.data(), receipt.bytes.size());
  }
  cable.free(id.size, id.slot);
  return {kIsBlock | index, {block.data(), receipt.bytes.size()}};
}

void Engine::relay(Cable& cable, const RequestId& id, ChunkHeader header) {
  const bool is_ours = header.hops_done < header.n_via && header.via[header.hops_done] == plan_.rank;
  const bool goes_on = header.hops_done + 1U < header.n_via;
  const uint32_t next = goes_on ? header.via[header.hops_done + 1U] : header.destination;
  if (!is_ours || next >= plan_.n_ranks || next == plan_.rank || !paths_.is_joined(plan_.rank, next)) {
    ++counts_.relay_drops;  // its source sends again, another way
    cable.free(id.size, id.slot);
    return;
  }
  ++counts_.relayed;
  ++header.hops_done;
  Origin origin;
  origin.offset = cable.offset_of(id.size, id.slot);
  origin.is_relayed = true;
  origin.from_cable = id.cable;
  origin.slot = id.slot;
  origin.size = id.size;
  submit(header, origin, next, id.size, header.hops_done);
}

/// Acknowledgements only grow; an old one that comes late frees nothing.
void Engine::hear_ack(uint32_t rank, uint32_t ack) {
  Flow& flow = flows_[rank];
  if (is_before(flow.next_sequence, ack)) [[unlikely]] {
    return;  // of what has not been sent
  }
  auto& waiting = flow.unacknowledged;
  uint64_t sent_ns = 0;   // of the last one
  bool is_sample = true;  // none of them has waited for a lost one's repetition
  while (!waiting.empty() && is_before(waiting.front().header.sequence, ack)) {
    const uint32_t slot = waiting.front().slot;
    if (waiting.front().first_slot != kNoSlot) [[unlikely]] {
      slots_.retire(waiting.front().first_slot);
    }
    sent_ns = waiting.front().sent_ns;
    is_sample = is_sample && waiting.front().n_tries == 0;
    waiting.pop_front();
    slots_.retire_received(slot);
  }
  if (is_sample && sent_ns != 0) {
    flow.round_trip_ns = flow.round_trip_ns - flow.round_trip_ns / 8 + (now_ns_ - sent_ns) / 8;
  }
}

}  // namespace ringbolt::engine
