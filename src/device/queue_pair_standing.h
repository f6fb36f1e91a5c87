#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "device/queue_pair_core.h"

namespace ringbolt::device {

class ReceiveQueue;
class SendQueue;

/// How far a queue pair is, and what could complete.
struct QueuePairStanding {
  ibv_qp_state state = IBV_QPS_RESET;
  uint32_t done = 0;        ///< sends, by numbers that wrap
  uint32_t unfinished = 0;  ///< sends
  uint32_t receives = 0;    ///< posted, in its own queue or the shared one
  friend bool operator==(const QueuePairStanding&, const QueuePairStanding&) = default;
};

/// "RTS, 0 sends unfinished, 3 receives posted". Thread-safe.
std::string text_of(const QueuePairStanding& standing);

/// For RINGBOLT_EXPLAIN: what a queue pair tells of itself and its peer where a program waits in vain. Owns nothing;
/// the queue pair must outlive it. Takes the locks of its halves. Thread-safe.
class QueuePairExplainer {
 public:
  QueuePairExplainer(QueuePairCore& core, SendQueue& sends, ReceiveQueue& receives)
      : core_(core), sends_(sends), receives_(receives) {}

  QueuePairStanding standing() const;
  bool is_noted() const { return core_.notes != nullptr; }
  /// For the peer to find, and what it has said so: "queue pair 0x12 of process 4711: ..."; empty: nothing.
  void tell_standing(const QueuePairStanding& standing) const;
  std::string peer_standing() const;
  /// "; the last send, wr_id 5, was posted at ... without IBV_SEND_SIGNALED", if so.
  std::string unsignaled_text() const;
  /// Of its oldest send, which waits for a receive of the peer's: told if the peer says that it has none.
  bool explain_starvation() const;

 private:
  QueuePairCore& core_;
  SendQueue& sends_;
  ReceiveQueue& receives_;
};

}  // namespace ringbolt::device
