#include <cstring>

#include "rsocket/connection.h"
#include "rsocket/work_id.h"

// Hot path: no allocation and no lock of its own per message.

namespace ringbolt::rsocket {
namespace {

constexpr uint32_t kLowWaterBytes = 2048;

}  // namespace

bool Connection::can_send_direct() const {
  return has_joined_ && error_ == 0 && !peer_disconnected_ && slots_.has_data() && staging_.contiguous() > 0;
}

bool Connection::can_send() const {
  return can_send_direct() && credits_.has_credit() && targets_.current() != nullptr;
}

bool Connection::has_room_to_send() const {
  return can_send() && staging_.free_bytes() >= std::min(kLowWaterBytes, settings_.send_bytes / 2);
}

bool Connection::can_send_mapping() const {
  return can_send() && (kIomapBytes <= settings_.inline_bytes || staging_.fits_whole(kIomapBytes));
}

/// Brings the next `length` bytes to where a work request may take them from. Returns how many bytes of staging that
/// cost.
uint32_t Connection::stage(IoCursor& from, uint32_t length, ibv_sge& piece, Lock& lock) {
  const void* inlined = length <= settings_.inline_bytes ? from.in_one_piece(length) : nullptr;
  if (inlined != nullptr) {
    piece = {reinterpret_cast<uint64_t>(inlined), length, 0};
    from.skip(length);
    return 0;
  }
  std::byte* place = endpoint_.staging().data() + staging_.take(length);
  // The place is ours until its completion; nobody else sends meanwhile.
  lock.unlock();
  from.gather(place, length);
  lock.lock();
  piece = {reinterpret_cast<uint64_t>(place), length, endpoint_.staging().lkey()};
  return length;
}

uint32_t Connection::send(IoCursor& from, uint32_t at_most, Lock& lock) {
  // Spoken for before the lock is let go: completions that come meanwhile only add.
  credits_.spend();
  slots_.take_data();
  const RemoteBlock target = *targets_.current();
  const auto wanted = static_cast<uint32_t>(std::min<size_t>(from.left(), at_most));
  const uint32_t length = std::min({wanted, target.length, staging_.contiguous(), Immediate::kMaxValue});
  targets_.advance(length);

  ibv_sge piece{};
  const uint32_t staged = stage(from, length, piece, lock);
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.wr_id = WorkId{WorkKind::data, staged}.emit();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.send_flags = flags_for(staged == 0);
  request.imm_data = Immediate{Op::data, length}.emit_wire();
  request.wr.rdma.remote_addr = target.address;
  request.wr.rdma.rkey = target.key;
  post(request);
  return length;
}

uint32_t Connection::send_direct(IoCursor& from, uint64_t offset, uint32_t at_most, Lock& lock) {
  const auto target = targets_.find(offset);
  if (!target) {
    return 0;
  }
  slots_.take_data();
  const auto wanted = static_cast<uint32_t>(std::min<size_t>(from.left(), at_most));
  const uint32_t length = std::min({wanted, target->length, staging_.contiguous()});

  ibv_sge piece{};
  const uint32_t staged = stage(from, length, piece, lock);
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr_id = WorkId{WorkKind::data, staged}.emit();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.send_flags = flags_for(staged == 0);
  request.wr.rdma.remote_addr = target->address;
  request.wr.rdma.rkey = target->key;
  post(request);
  return length;
}

void Connection::send_mapping(uint32_t index, uint64_t offset, const RemoteBlock& block) {
  credits_.spend();
  slots_.take_data();
  const auto bytes = emit_iomap(offset, block, swaps_);
  constexpr auto kLength = static_cast<uint32_t>(kIomapBytes);
  ibv_sge piece{reinterpret_cast<uint64_t>(bytes.data()), kLength, 0};
  uint32_t staged = 0;
  if (kLength > settings_.inline_bytes) {
    const uint32_t padding = staging_.padding(kLength);
    staging_.take(padding);
    std::byte* place = endpoint_.staging().data() + staging_.take(kLength);
    std::memcpy(place, bytes.data(), bytes.size());
    piece = {reinterpret_cast<uint64_t>(place), kLength, endpoint_.staging().lkey()};
    staged = padding + kLength;
  }
  ibv_send_wr request{};
  request.send_flags = flags_for(staged == 0);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.wr_id = WorkId{WorkKind::data, staged}.emit();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.imm_data = Immediate{Op::iomap_updated, index}.emit_wire();
  request.wr.rdma.remote_addr = peer_iomap_.address + index * kIomapBytes;
  request.wr.rdma.rkey = peer_iomap_.key;
  post(request);
}

}  // namespace ringbolt::rsocket
