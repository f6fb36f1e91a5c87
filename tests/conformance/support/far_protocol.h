// What a test asks of the far side of a connection. Plain values: they travel over a socket when
// the far side is another process.
#pragma once

#include "endpoint.h"

namespace ringbolt::conformance {

enum class FarCommand : uint32_t {
  open,        // qp, region_bytes, region_access -> address, region_address, keys
  connect,     // peer
  post_recv,   // wr_id, pieces
  post_send,   // wr_id, opcode, flags, immediate, remote_address, rkey, pieces (RC and UC)
  wait_recv,   // -> wc
  wait_send,   // -> wc
  fill,        // pieces, seed
  check,       // pieces, length, seed -> text
  clear,       // region back to guard bytes
  get_word,    // offset -> word
  set_word,    // offset, word
  modify,      // state
  get_state,   // -> state
  wait_event,  // -> event_type
  no_event,    // -> word: 1 when no async event waits
  destroy_qp,  // the queue pair alone
  deregister,  // the region's registration alone
  bind_type_1,  // window over [offset, offset + length), region_access -> rkey, wc
  bind_type_2,  // the same with a window of type 2
  close,       // everything
};

inline constexpr size_t kMaxPieces = 16;

struct FarRequest {
  FarCommand command = FarCommand::close;
  QpOptions qp{};
  uint64_t region_bytes = 0;
  unsigned region_access = 0;
  QpAddress peer{};
  uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;
  uint32_t immediate = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint32_t n_pieces = 0;
  Piece pieces[kMaxPieces]{};
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t seed = 0;
  uint64_t word = 0;
  ibv_qp_state state = IBV_QPS_RESET;
};

struct FarReply {
  bool failed = false;
  char text[256]{};
  int error = 0;
  QpAddress address{};
  uint64_t region_address = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
  ibv_wc wc{};
  uint64_t word = 0;
  ibv_qp_state state = IBV_QPS_RESET;
  ibv_event_type event_type = IBV_EVENT_CQ_ERR;
};

/// The far side itself: one device, one queue pair, one region. Not thread-safe.
class FarSide {
 public:
  /// Carries out one command. Never throws: what went wrong is in the reply.
  FarReply handle(const FarRequest& request);

 private:
  void carry_out(const FarRequest& request, FarReply& reply);
  void open(const FarRequest& request, FarReply& reply);
  int post_send(const FarRequest& request);
  void bind_window(const FarRequest& request, FarReply& reply);
  void close();

  std::unique_ptr<Device> device_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Region> region_;
  Mw window_;
};

}  // namespace ringbolt::conformance
