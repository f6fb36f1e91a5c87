#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

namespace ringbolt::device {

/// A send work request in the form that the engine executes: posted just now (the pieces are the program's array) or
/// stored (they are the queue's copy).
struct SendRequest {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  bool is_inline = false;  ///< the pieces' keys mean nothing
  bool is_fenced = false;
  bool is_solicited = false;
  uint32_t length = 0;     ///< bytes of all pieces
  uint32_t pieces_count = 0;
  const ibv_sge* pieces = nullptr;
  uint32_t immediate = 0;  ///< or the key to invalidate
  uint32_t key = 0;        ///< remote key; region key of a window binding
  uint64_t remote_address = 0;
  uint64_t compare_or_add = 0;
  uint64_t swap = 0;
  uint32_t remote_qpn = 0;  ///< datagrams
  uint32_t qkey = 0;
  uint32_t window_key = 0;
  uint32_t window_access = 0;
  uint64_t window_length = 0;
  bool is_type2_window = false;
  std::array<uint8_t, 16> remote_gid{};
};

/// Where a queued send stands.
enum class SendPhase : uint8_t {
  queued,    ///< its request is stored, and `moved` bytes are on their way already
  answering, ///< the peer executes it; its request is stored, for the result
  sent,      ///< complete once the slots before `end_slot` are consumed
  failed,    ///< complete, with `status`
};

struct SendEntry {
  uint64_t wr_id = 0;
  uint32_t end_slot = 0;
  uint32_t length = 0;
  uint32_t moved = 0;
  uint32_t operation = 0;
  ibv_wc_opcode wc_opcode = IBV_WC_SEND;
  SendPhase phase = SendPhase::queued;
  bool awaits_chunk = false;  ///< a read by the peer: `operation` is under way
  bool is_signaled = false;
  uint8_t status = IBV_WC_SUCCESS;
};

}  // namespace ringbolt::device
