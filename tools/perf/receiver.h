#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pair/peer.h"
#include "perf/link.h"

namespace ringbolt::tools::perf {

/// What a receiver has found out.
struct Receipt {
  uint64_t messages = 0;  ///< arrived and checked
  uint64_t lost = 0;
};

/// The receiving end of a Sender: checks every message, in order, and acknowledges. Of WRITEs it learns by notices,
/// which follow them on their queue pair. Not thread-safe.
class Receiver {
 public:
  Receiver(Link& link, Peer& peer);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure, naming the message, if one
  /// is damaged, or, over RC, missing or out of order.
  bool advance();
  /// The sender's posted(): it has ended. [queue pairs]
  void set_posted(const std::vector<uint64_t>& counts);
  /// When all that was posted has come; over UC and UD when nothing more can be hoped for.
  bool is_done();
  const Receipt& receipt() const { return receipt_; }

 private:
  struct Lane {
    uint64_t next = 0;  ///< the sequence number expected
    uint64_t credited = 0;
    uint64_t posted = 0;  ///< by the sender, once it has ended
  };

  void take_message(uint32_t index, uint32_t slot, uint32_t length);
  void take_notice(uint32_t index, uint32_t slot);
  void check(uint32_t index, std::span<const std::byte> message, uint64_t sequence);
  void acknowledge(uint32_t index, uint64_t least);
  void when_idle();

  Link& link_;
  Peer& peer_;
  bool is_write_;
  /// The target of WRITEs has nothing to do until it is told of some; looking all the time would take from the writer
  /// what the two share: a processor, or the memory's bookkeeping.
  bool may_nap_;
  Check check_;
  uint32_t window_;
  uint32_t slots_;
  uint32_t credit_every_;
  std::vector<Lane> lanes_;
  Receipt receipt_;
  uint32_t fruitless_ = 0;
  bool knows_posted_ = false;
};

}  // namespace ringbolt::tools::perf
