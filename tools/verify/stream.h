#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/arrivals.h"
#include "verify/context.h"
#include "verify/rig.h"

namespace ringbolt::tools::verify {

/// Looks at every byte of what a StreamSender sends, the moment its receive completes, and at every byte around it.
/// Acknowledges beside the verbs. Not thread-safe.
class StreamReceiver {
 public:
  /// `acknowledges`: there is a StreamSender that wants to know.
  /// The rig outlives it.
  StreamReceiver(const Rig& rig, bool acknowledges);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure.
  /// Blocks for some 30 ms at most for a message that looks wrong, to tell late data from damaged.
  bool advance();
  bool is_done() const { return is_done_; }
  /// Adds messages, bytes and losses.
  void add_to(Outcome& outcome) const;
  std::string where() const;
  /// Of an end that may break off: failed completions are no finding, and what never came is none either, as long as
  /// nothing is missing in between.
  void tolerate_end() { is_tolerant_ = true; }
  /// So many have come on each queue pair, at least.
  bool has_all(uint64_t messages) const;
  /// Judges what came in until now, for who has no sender that tells.
  /// Only what is missing between others counts as lost.
  void finish_early();

 private:
  void take(const ibv_wc& completion);
  /// Whether what does not look right does so some milliseconds later.
  template <class Look>
  bool becomes_right(Look&& look);
  void check_message(uint32_t index, uint64_t slot, uint64_t length);
  void acknowledge();
  void take_texts();
  void wait_for_stragglers();
  void finish(const std::vector<uint64_t>& posted);

  const Context& context_;
  const Rig& rig_;
  bool acknowledges_;
  std::vector<Arrivals> lanes_;
  std::vector<uint64_t> told_;
  uint64_t untold_ = 0;
  uint64_t acknowledge_every_;
  uint64_t quiet_ns_;
  std::vector<uint64_t> flushed_;  // what the sender has posted, while it waits; empty: it does not
  uint64_t flush_ns_ = 0;
  uint64_t arrived_ns_ = 0;
  uint64_t end_ns_ = 0;
  std::vector<uint64_t> posted_;  // once the sender has ended
  uint32_t fruitless_ = 0;
  uint64_t mismatches_ = 0;
  bool is_done_ = false;
  bool is_tolerant_ = false;
};

}  // namespace ringbolt::tools::verify
