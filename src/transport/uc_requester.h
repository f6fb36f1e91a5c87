#pragma once

// Hot path: no allocation, lock, clock, virtual call or I/O per packet.

#include <cstdint>
#include <vector>

#include "transport/operation.h"
#include "transport/sequence.h"

namespace ringbolt::transport {

/// The requesting half of a UC queue pair: nothing comes back, an operation is complete once its last packet was handed
/// out. Not thread-safe.
/// Used under the queue pair's lock for sending. Its operations' bytes must stay until what was handed out is built.
class UcRequester {
 public:
  struct Attributes {
    uint32_t dest_qp = 0;
    uint32_t first_psn = 0;
    uint32_t mtu_bytes = 1024;
    uint32_t queue_depth = 1;
  };

  /// Allocates; throws std::bad_alloc.
  explicit UcRequester(const Attributes& attributes);

  bool can_submit() const { return submitted_ - completed_ < attributes_.queue_depth; }
  /// can_submit() holds. SEND (without invalidate) and WRITE.
  void submit(const Operation& operation);
  /// False: there is nothing to send.
  bool next_packet(uint64_t now_ns, OutPacket& out);
  uint32_t completed() const { return completed_; }
  bool is_idle() const { return completed_ == submitted_; }

 private:
  Attributes attributes_;
  uint32_t queue_mask_;
  std::vector<Operation> operations_;
  uint32_t completed_ = 0;
  uint32_t submitted_ = 0;
  uint32_t packet_ = 0;  ///< of the operation at hand
  uint32_t psn_;
};

}  // namespace ringbolt::transport
