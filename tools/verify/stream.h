#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/arrivals.h"
#include "verify/context.h"
#include "verify/rig.h"
#include "verify/under_way.h"

namespace ringbolt::tools::verify {

/// Sends stamped messages over all queue pairs of a rig, never more than the receiver has room for. Each buffer is
/// written anew as soon as its send has completed, as a program may. Acknowledgements come beside the verbs, so that
/// they don't depend on what is verified. Not thread-safe.
class StreamSender {
 public:
  StreamSender(const Context& context, const Rig& rig);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure.
  bool advance();
  bool is_done() const { return is_done_; }
  uint64_t duration_ns() const { return settled_ns_ - begin_ns_; }
  /// "queue pair 0: 512 posted, 500 completed, queue pair 1: 470 posted, 470 completed; acknowledged 480, 470".
  std::string where() const;

 private:
  struct Lane {
    uint64_t settled = 0;  // the receiver awaits no more of these
    bool wants_more = true;
  };

  bool post(uint32_t index);
  bool take_credits();
  void look_for_end();

  const Context& context_;
  const Rig& rig_;
  Batch batch_;
  Pace pace_;
  uint32_t window_;
  uint64_t seed_;
  std::vector<Lane> lanes_;
  uint64_t begin_ns_;
  uint64_t settled_ns_;
  uint32_t turns_ = 0;
  uint32_t fruitless_ = 0;
  bool has_asked_ = false;
  bool is_done_ = false;
};

/// Looks at every byte of what a StreamSender sends, the moment its receive completes, and at every byte around it.
/// Acknowledges beside the verbs. Not thread-safe.
class StreamReceiver {
 public:
  /// `acknowledges`: there is a StreamSender that wants to know.
  StreamReceiver(const Context& context, const Rig& rig, bool acknowledges);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure.
  bool advance();
  bool is_done() const { return is_done_; }
  uint64_t messages() const { return sum(&Arrivals::messages); }
  uint64_t bytes() const { return sum(&Arrivals::verified_bytes); }
  uint64_t lost() const { return sum(&Arrivals::lost); }
  std::string where() const;
  /// Of an end that may break off: failed completions are no finding, and what never came is none either, as long as
  /// nothing is missing in between.
  void tolerate_end() { is_tolerant_ = true; }
  /// So many have come on each queue pair, at least.
  bool has_all(uint64_t messages) const;
  /// Judges what came in until now, for who has no sender that tells.
  void finish_early();

 private:
  uint64_t sum(uint64_t (Arrivals::*figure)() const) const;
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
