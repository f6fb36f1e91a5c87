#pragma once

#include <cstdint>
#include <optional>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/patience.h"
#include "perf/poster.h"

namespace ringbolt::tools::perf {

/// One end of round trips by SEND. Each message bears its sender's seed, so an echo is no answer. Not thread-safe.
class MessageRound {
 public:
  MessageRound(Link& link, Peer& peer);

  /// Sends message `number` and takes the answer to it. False if that was lost, which over RC is a failure.
  /// Throws ProbeFailure. Hot path.
  bool ask(uint64_t number);
  /// Answers everything until the peer says that it has "asked" all.
  void answer_all();

 private:
  void send(uint64_t number);
  /// The number of a message, if one has come.
  std::optional<uint64_t> take();
  void reap();
  /// Posts the receive of the message taken last: after the answer, which it would only delay.
  void repay();

  Link& link_;
  Peer& peer_;
  Poster poster_;
  Patience patience_;
  uint32_t slots_;
  uint32_t source_slots_;
  uint64_t sent_ = 0;
  uint64_t completed_ = 0;
  uint64_t expected_ = 0;
  std::optional<uint32_t> owed_slot_;
};

/// One end of round trips by WRITE into one slot at the other end, which looks at the memory until both stamps are
/// there. Not thread-safe.
class WriteRound {
 public:
  WriteRound(Link& link, Peer& peer);

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
  /// How many completions it took.
  int reap();

  Link& link_;
  Peer& peer_;
  Poster poster_;
  Patience patience_;
  uint32_t slots_;
  uint32_t source_slots_;
  uint64_t sent_ = 0;
  uint64_t completed_ = 0;
};

}  // namespace ringbolt::tools::perf
