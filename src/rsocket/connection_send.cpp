#include <cstring>

#include "rsocket/connection.h"
#include "rsocket/work_id.h"

// Hot path: no allocation and no lock of its own per message.

namespace ringbolt::rsocket {

/// How much of `wanted` goes into one message: no more than a quarter of the buffer, so that others are on their way
/// meanwhile.
uint32_t Connection::piece_bytes(size_t wanted) const {
  return static_cast<uint32_t>(std::min<size_t>({wanted, settings_.send_bytes / 4, Immediate::kMaxValue}));
}

bool Connection::can_send_direct(size_t wanted) const {
  return is_usable() && slots_.has_data() && staging_.fits_whole(piece_bytes(wanted));
}

bool Connection::can_send(size_t wanted) const {
  const RemoteBlock* target = targets_.current();
  return target != nullptr && credits_.has_credit() && can_send_direct(std::min<size_t>(wanted, target->length));
}

bool Connection::can_send_mapping() const {
  return is_usable() && slots_.has_data() && credits_.has_credit() &&
         (kIomapBytes <= settings_.inline_bytes || staging_.fits_whole(kIomapBytes));
}

/// Brings the next `length` bytes to where a work request may take them from. Returns how many bytes of staging that
/// cost.
uint32_t Connection::stage(IoCursor& from, uint32_t length, ibv_sge& piece, base::Mutex& lock) {
  const void* inlined = length <= settings_.inline_bytes ? from.in_one_piece(length) : nullptr;
  if (inlined != nullptr) {
    piece = {reinterpret_cast<uint64_t>(inlined), length, 0};
    from.skip(length);
    return 0;
  }
  const uint32_t padding = staging_.padding(length);
  staging_.take(padding);
  std::byte* place = endpoint_.staging().data() + staging_.take(length);
  // The place is ours until its completion; nobody else sends meanwhile.
  {
    const base::Unlocked unlocked(lock);
    from.gather(place, length);
  }
  piece = {reinterpret_cast<uint64_t>(place), length, endpoint_.staging().lkey()};
  return padding + length;
}

uint32_t Connection::send(IoCursor& from, uint32_t at_most, base::Mutex& lock) {
  // Spoken for before the lock is let go: completions that come meanwhile only add.
  credits_.spend();
  slots_.take_data();
  const RemoteBlock target = *targets_.current();
  const uint32_t length = piece_bytes(std::min<size_t>({from.left(), at_most, target.length}));
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

uint32_t Connection::send_direct(IoCursor& from, uint64_t offset, uint32_t at_most, base::Mutex& lock) {
  const auto target = targets_.find(offset);
  if (!target) {
    return 0;
  }
  slots_.take_data();
  const uint32_t length = piece_bytes(std::min<size_t>({from.left(), at_most, target->length}));

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
