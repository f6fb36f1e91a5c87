#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringbolt::device {

/// A send work request in the form that the engine executes: posted just now (the pieces are the program's array) or
/// stored (they are the queue's copy).
///
/// Without initialisers: one is made for every send, and only what its opcode uses is set.
struct SendRequest {
  ibv_wr_opcode opcode;
  bool is_inline;  ///< the pieces' keys mean nothing
  bool is_fenced;
  bool is_solicited;
  bool stays_in_place;  ///< see base/in_place.h
  bool is_type2_window;
  uint32_t length;  ///< bytes of all pieces
  uint32_t pieces_count;
  uint32_t immediate;     ///< or the key to invalidate
  const ibv_sge* pieces;  ///< `pieces_count` of them; not owned
  uint32_t key;           ///< remote key; region key of a window binding
  uint32_t window_key;
  uint64_t remote_address;  ///< or the window's first address
  uint64_t compare_or_add;
  uint64_t swap;
  uint64_t window_length;
  uint32_t window_access;
  uint32_t remote_qpn;  ///< datagrams
  uint32_t qkey;
  std::array<uint8_t, 16> remote_gid;
  std::array<uint8_t, 16> source_gid;
  uint8_t source_gid_index;
  uint8_t target_gid_index;
  uint8_t traffic_class;
  bool is_loopback;
  bool is_remote;  ///< a datagram that leaves through the network
};

/// Where a queued send stands.
enum class SendPhase : uint8_t {
  queued,     ///< its request is stored, and `moved` bytes are on their way already
  answering,  ///< the peer executes it; its request is stored, for the result
  wired,      ///< number `operation` of the network engine; its request is stored, for its bytes
  sent,       ///< complete once the slots before `end_slot` are consumed
  finished,   ///< complete
  failed,     ///< complete, with `status`
};

/// A send from its post to its completion, under the lock for sending. What completing it needs; the request itself
/// lies beside it (SendQueue::request), and only if a phase says that it is stored.
struct SendEntry {
  uint64_t wr_id = 0;
  uint32_t end_slot = 0;   ///< of the lane, by numbers that wrap
  uint32_t length = 0;     ///< bytes
  uint32_t moved = 0;      ///< bytes of `length`
  uint32_t operation = 0;  ///< number at the peer (answering) or in the engine (wired)
  ibv_wc_opcode wc_opcode = IBV_WC_SEND;
  SendPhase phase = SendPhase::queued;
  bool awaits_chunk = false;  ///< a read by the peer: `operation` is under way
  bool is_signaled = false;
  bool has_quirk = false;           ///< see SendQuirk
  uint8_t status = IBV_WC_SUCCESS;  ///< ibv_wc_status
};

}  // namespace ringbolt::device
