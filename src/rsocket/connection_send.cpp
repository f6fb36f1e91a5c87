#include <cstring>

#include "rsocket/connection.h"
#include "rsocket/work_id.h"

// Hot path: no allocation and no lock of its own per message.

namespace ringbolt::rsocket {

/// Brings the next `length` bytes to where a work request may take them from. Returns how many bytes of staging that
/// cost.
uint32_t Connection::stage(IoCursor& from, uint32_t length, ibv_sge& piece, base::Mutex& lock) {
  // The device copies it while it is posted, straight from the program's memory.
  const void* inlined = out_.is_inline(length) ? from.in_one_piece(length) : nullptr;
  if (inlined != nullptr) {
    // The key of inline data is not looked at (ibv_post_send(3)).
    piece = {reinterpret_cast<uint64_t>(inlined), length, 0};
    from.skip(length);
    return 0;
  }
  const SendWindow::Place place = out_.take_place(length);
  std::byte* bytes = endpoint_.staging().data() + place.offset;
  // The place is ours until its completion; nobody else sends meanwhile.
  {
    const base::Unlocked unlocked(lock);
    from.gather(bytes, length);
  }
  piece = {reinterpret_cast<uint64_t>(bytes), length, endpoint_.staging().lkey()};
  return place.cost_bytes;
}

/// `staged_bytes`: what `piece` cost of the buffer; 0: it is sent inline.
void Connection::write(Immediate message, const RemoteBlock& target, ibv_sge& piece, uint32_t staged_bytes,
                       ibv_wr_opcode opcode) {
  ibv_send_wr request{};
  request.opcode = opcode;
  request.wr_id = WorkId{WorkKind::data, staged_bytes}.emit();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.send_flags = staged_bytes == 0 ? unsigned{IBV_SEND_INLINE} : 0U;
  request.imm_data = message.emit_wire();
  request.wr.rdma.remote_addr = target.address;
  request.wr.rdma.rkey = target.key;
  post(request);
}

uint32_t Connection::send(IoCursor& from, uint32_t at_most, base::Mutex& lock) {
  // Spoken for before the lock is let go: completions that come meanwhile only add.
  const RemoteBlock target = out_.take_message(std::min<size_t>(from.left(), at_most));
  ibv_sge piece{};
  const uint32_t staged = stage(from, target.length, piece, lock);
  write({Op::data, target.length}, target, piece, staged, IBV_WR_RDMA_WRITE_WITH_IMM);
  return target.length;
}

uint32_t Connection::send_direct(IoCursor& from, uint64_t offset, uint32_t at_most, base::Mutex& lock) {
  const auto target = out_.take_direct(offset, std::min<size_t>(from.left(), at_most));
  if (!target) {
    return 0;
  }
  ibv_sge piece{};
  const uint32_t staged = stage(from, target->length, piece, lock);
  write({}, *target, piece, staged, IBV_WR_RDMA_WRITE);
  return target->length;
}

void Connection::send_mapping(uint32_t index, uint64_t offset, const RemoteBlock& block) {
  out_.take_mapping();
  // On the stack: inline data are copied by the post, others are copied to the buffer here.
  const auto bytes = emit_iomap(offset, block, peer_tables_.is_swapped());
  constexpr auto kLength = static_cast<uint32_t>(kIomapBytes);
  ibv_sge piece{reinterpret_cast<uint64_t>(bytes.data()), kLength, 0};
  uint32_t staged = 0;
  if (!out_.is_inline(kLength)) {
    const SendWindow::Place place = out_.take_place(kLength);
    std::byte* copy = endpoint_.staging().data() + place.offset;
    std::memcpy(copy, bytes.data(), bytes.size());
    piece = {reinterpret_cast<uint64_t>(copy), kLength, endpoint_.staging().lkey()};
    staged = place.cost_bytes;
  }
  const PeerTables::Place entry = peer_tables_.iomap_entry(index);
  write({Op::iomap_updated, index}, {entry.address, entry.key, kLength}, piece, staged, IBV_WR_RDMA_WRITE_WITH_IMM);
}

}  // namespace ringbolt::rsocket
