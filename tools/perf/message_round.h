#pragma once

#include <cstdint>
#include <optional>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/pace.h"
#include "perf/poster.h"

namespace ringbolt::tools::perf {

/// What one end of round trips posts and awaits, whatever the operation. Not thread-safe.
class Round {
 protected:
  Round(Link& link, Peer& peer, ibv_wr_opcode opcode);

  /// The slot that message `sequence` is sent from, stamped.
  std::span<std::byte> stamped_slot(uint64_t sequence);
  void post(std::span<std::byte> slot, uint64_t remote_address);
  /// As perftest does: some devices push what is posted only while somebody polls for it.
  void await_posted(const char* what);
  /// How many completions it took.
  int reap(const char* what);
  /// After a look that found no answer: it has been awaited for too long. Over RC never.
  bool has_lost();

  Link& link_;
  Peer& peer_;
  Poster poster_;
  Patience patience_;
  uint32_t slots_;
  uint32_t source_slots_;
  uint64_t sent_ = 0;
  uint64_t completed_ = 0;
};

/// One end of round trips by SEND. Each message bears its sender's seed, so an echo is no answer. Not thread-safe.
class MessageRound : Round {
 public:
  MessageRound(Link& link, Peer& peer) : Round(link, peer, IBV_WR_SEND) {}

  /// Sends message `number` and takes the answer to it. False if that was lost, which over RC is a failure.
  /// Throws ProbeFailure. Hot path.
  bool ask(uint64_t number);
  /// Answers everything until the peer says that it has "asked" all.
  void answer_all();

 private:
  void send(uint64_t number);
  /// The number of a message, if one has come.
  std::optional<uint64_t> take();
  /// Posts the receive of the message taken last: after the answer, which it would only delay.
  void repay();

  uint64_t expected_ = 0;
  std::optional<uint32_t> owed_slot_;
};

/// One end of round trips by WRITE into one slot at the other end, which looks at the memory until both stamps are
/// there. Not thread-safe.
class WriteRound : Round {
 public:
  WriteRound(Link& link, Peer& peer) : Round(link, peer, IBV_WR_RDMA_WRITE) {}

  /// Writes message `number` and waits for that of the peer. False if it was lost, which over RC is a failure.
  /// Throws ProbeFailure. Hot path.
  bool ask(uint64_t number);
  /// Answers everything until the peer says that it has "asked" all.
  void answer_all();

 private:
  void write(uint64_t number);
  /// Whether the peer's message `number` has come whole.
  bool has_come(uint64_t number);
  void check(uint64_t number);
};

}  // namespace ringbolt::tools::perf
