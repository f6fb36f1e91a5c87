#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "pair/device.h"
#include "pair/peer.h"
#include "stop.h"
#include "verify/finding.h"
#include "verify/step.h"
#include "verify/watch.h"

namespace ringbolt::tools::verify {

/// What could not be checked, and why: each said once, however many steps run into it.
inline void note_once(std::vector<std::string>& notes, std::string text) {
  if (std::ranges::find(notes, text) == notes.end()) {
    notes.push_back(std::move(text));
  }
}

/// What every mode works with. All of it outlives the step.
struct Context {
  const pair::Device& device;
  const Step& step;
  const pair::PortChoice& choice;
  pair::Peer& peer;
  Watch& watch;
  Tally& tally;
  std::vector<std::string>& notes;  ///< what could not be checked
  bool is_client;

  /// Whether this end posts, where one end does.
  bool initiates() const { return is_client != step.is_reversed; }
  void note(std::string text) const { note_once(notes, std::move(text)); }
  /// Both ends are so far. `what`: the awaited, for messages.
  /// Blocks for as long as the peer may be awaited, and polls nothing meanwhile. Throws ProbeFailure.
  void meet(const char* kind, const char* what) const {
    peer.tell(kind, "");
    peer.await(kind, what);
  }
};

/// What one end knows of a step.
struct Outcome {
  uint64_t duration_ns = 0;  ///< by who posts: first post to the acknowledgement of the last checked byte
  uint64_t messages = 0;     ///< verified here
  uint64_t bytes = 0;        ///< likewise
  uint64_t lost = 0;         ///< as many as may be
  uint64_t rounds = 0;       ///< of churn
  uint64_t slowest_ns = 0;   ///< of a round
  std::string refusal = {};  ///< the device does not do that at all: why
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// A mode: its part of an end, and what that checks.
/// run() is called at both ends at once, after both have the step. It throws ProbeFailure, Stalled or Found, and then
/// has destroyed its queue pairs; findings made until then are in the tally.
struct Trial {
  Mode mode;
  Outcome (*run)(const Context& context);
  const char* checks;
};
Outcome run_stream(const Context& context);
Outcome run_write(const Context& context);
Outcome run_read(const Context& context);
Outcome run_atomic(const Context& context);
Outcome run_churn(const Context& context);

inline constexpr std::array kTrials{
    Trial{Mode::kStream, run_stream,
          "each message came once, in order (UD: in any order), whole, when its receive completed; every byte of it "
          "and of the buffer around it"},
    Trial{Mode::kWrite, run_write,
          "the target's whole memory after each round, and over RC by READ too; immediates, their order"},
    Trial{Mode::kRead, run_read, "what READs brought, byte by byte; never older than what was seen or told before"},
    Trial{Mode::kAtomic, run_atomic, "the result of every fetch-and-add and compare-and-swap, and the target's cells"},
    Trial{Mode::kChurn, run_churn,
          "queue pairs made, used and destroyed, also with sends under way; nothing of older ones in newer ones"}};

/// When a step has done enough: by count or by time, or because somebody wants it to stop. Not thread-safe.
class Pace {
 public:
  explicit Pace(const Step& step)
      : count_(step.count), end_ns_(base::now_ns() + step.duration_ms * 1'000'000), has_end_(step.duration_ms != 0) {}

  /// Whether another is wanted after `done`. Hot path: looks at the clock every 16th time only.
  bool wants_more(uint64_t done) {
    if (is_over_ || (count_ != 0 && done >= count_)) {
      return false;
    }
    constexpr uint32_t kSkipped = 16;
    if (calls_++ % kSkipped == 0) {
      is_over_ = is_stopped() || (has_end_ && base::now_ns() >= end_ns_);
    }
    return !is_over_;
  }

 private:
  uint64_t count_;
  uint64_t end_ns_;
  bool has_end_;
  bool is_over_ = false;
  uint32_t calls_ = 0;
};

}  // namespace ringbolt::tools::verify
