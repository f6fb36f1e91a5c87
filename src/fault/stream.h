#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fault/rule.h"

namespace ringbolt::fault {

/// What happens to one frame. Who judged it acts on it in this order: a frame that is not lost is harmed (turned bits,
/// then the cut), multiplied, and held back. Times are in ns, from when the frame was judged.
struct Verdict {
  uint64_t number = 0;  ///< of the frame (message, call...) in its stream
  bool is_lost = false;
  uint32_t copies = 0;           ///< that come besides it
  uint32_t overtakers = 0;       ///< so many frames go first; 0: it is not held back for others
  uint64_t hold_ns = 0;          ///< longest time that it is held back; 0: not at all
  size_t kept_bytes = SIZE_MAX;  ///< what is beyond is cut off
  bool is_refused = false;       ///< a call fails
  int error = 0;                 ///< with this; 0: with what the device usually says
  uint32_t status = 0;           ///< of a completion: it has this
  bool is_not_ready = false;     ///< of a message: the receiver says that it has no receive for it
  bool is_early = false;         ///< likewise: it completes when it is posted
  uint32_t flip_count = 0;
  std::array<uint32_t, Rule::kMaxBits> flips{};  ///< bit numbers; bit 8 k + i is bit i of byte k

  bool is_harmed() const { return flip_count != 0 || kept_bytes != SIZE_MAX; }
  bool is_clean() const {
    Verdict clean;
    clean.number = number;
    return *this == clean;
  }
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// Turns the bits that the verdict names. Bits beyond the frame's end are passed over.
void turn_bits(const Verdict& verdict, std::span<std::byte> frame);

/// How many frames suffered what.
struct Tally {
  uint64_t frames = 0;
  uint64_t lost = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;
  uint64_t corrupted = 0;
  uint64_t truncated = 0;
  uint64_t delayed = 0;
  friend bool operator==(const Tally&, const Tally&) = default;
};

/// The frames of one port in one direction, in their order (or calls, messages, completions). What happens to the n-th
/// frame depends on the rule, its seed, the place, the direction and n alone (of a shape on time, too): rules don't
/// disturb each other, and the same seed gives the same faults. Not thread-safe: its owner's
/// lock covers it, as in link/udp_faults.h and device/verb_faults.h.
class Stream {
 public:
  /// `salt`: other than 0 for one of several streams of a place, which then suffer at different times.
  Stream(Place place, Direction direction, Subject subject = Subject::frame, std::optional<Object> object = {},
         uint64_t salt = 0)
      : place_(std::move(place)), direction_(direction), subject_(subject), object_(object), salt_(salt) {}

  /// From now on these rules. A rule that was there before goes on counting its frames and its time. `now_ns` is of
  /// the monotonic clock, as for judge(); a rule that was taken out and comes back begins anew. Two equal rules are
  /// two.
  void set_rules(const Plan& plan, uint64_t now_ns);
  bool has_rules() const { return !active_.empty(); }

  /// The next frame, of `bytes` bytes (at least 2); of objects: the next call, of which there are so many. `now_ns` may
  /// be a little older than that of the call before. Never blocks, allocates nothing.
  Verdict judge(size_t bytes, uint64_t now_ns);
  /// Repetition `repetition` (from 1) of frame `number`, which a sender makes by its timers: it takes no number, so
  /// that what befalls others does not depend on when it comes. For the range of a rule it counts as so many frames
  /// later. Not in the tally. A shape's cable is taken by it all the same.
  Verdict judge_again(uint64_t number, uint32_t repetition, size_t bytes, uint64_t now_ns);
  /// The first rule of this kind that holds now, if any. Valid until the next set_rules().
  const Rule* holding(Kind kind, uint64_t now_ns) const;

  const Place& place() const { return place_; }
  Direction direction() const { return direction_; }
  const Tally& tally() const { return tally_; }

 private:
  struct Active {
    Rule rule;
    // Of the dice: seed, kind, place and direction mixed, see key_of().
    uint64_t key;
    uint64_t first;  ///< number of the frame that was the next one when it took effect
    uint64_t since_ns;
    uint64_t line_free_ns;  ///< of a shape: when the cable has carried what came before
  };
  uint64_t key_of(const Rule& rule) const;
  static bool is_due(const Active& active, uint64_t frame, uint64_t now_ns);
  static void apply(Active& active, uint64_t key, uint64_t frame, size_t bytes, uint64_t now_ns, Verdict& verdict);

  Place place_;
  Direction direction_;
  Subject subject_;
  std::optional<Object> object_;
  uint64_t salt_;
  std::vector<Active> active_;
  Tally tally_;
};

}  // namespace ringbolt::fault
