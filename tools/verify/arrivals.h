#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "verify/finding.h"
#include "verify/stamp.h"
#include "verify/step.h"

namespace ringbolt::tools::verify {

/// Keeps account of the messages that come in on one queue pair, and says in words what is wrong with them. Pure: knows
/// no verbs and no clock. Not thread-safe.
class Arrivals {
 public:
  /// `seed`: of the sender. `epoch`: of the queue pair. Step and tally live longer than this.
  Arrivals(const Step& step, uint32_t queue_pair, uint16_t epoch, uint64_t seed, Tally& tally);

  /// Whether `message` is one that may come now, and every byte of it as it should be; then it is counted. Else nothing
  /// changes. `length`: what the completion told; `message` is that much of the buffer, or less if the buffer is
  /// smaller. Hot path.
  /// `message` may still be written by the device while this looks: then it is not accepted, and may be later.
  bool accept(std::span<const std::byte> message, uint64_t length);
  /// Says what is wrong with a message that was not accepted, and counts it. `is_untouched`: the buffer is as it was
  /// before the receive was posted. Returns how many bytes of the buffer are explained by that.
  uint64_t examine(std::span<const std::byte> message, uint64_t length, bool is_untouched);
  /// The last message was accepted at the second look, `waited_us` after its completion.
  /// Right after that accept().
  void note_late(uint64_t waited_us);
  /// Nothing more is awaited of the first `posted` messages: what is missing is lost.
  /// `posted` may be anything that a peer tells: memory for 2^17 messages is taken at most.
  void give_up(uint64_t posted);
  /// At the end, when `posted` were sent: judges what is lost by what may be.
  void judge_loss(uint64_t posted);

  /// So many of the sender's messages need no more waiting: they came, or are given up.
  uint64_t settled() const { return next_ - missing_.size(); }
  uint64_t next() const { return next_; }
  /// That came, and were as they should be.
  uint64_t messages() const { return messages_; }
  uint64_t verified_bytes() const { return verified_bytes_; }
  uint64_t lost() const { return lost_; }
  const std::string& name() const { return name_; }

 private:
  struct Gap {
    uint64_t missing;
    uint64_t instead;  ///< what came in its place; the same: nothing after it
  };

  Stamp stamp_of(uint64_t sequence) const;
  bool is_awaited(uint64_t sequence) const { return sequence >= next_ || missing_.count(sequence) != 0; }
  void note_gap(uint64_t instead);
  void count(uint64_t sequence, bool is_verified, uint64_t bytes);
  void add(Kind kind, const std::string& text) { tally_.add(kind, name_ + ": " + text); }
  uint64_t examine_stamped(std::span<const std::byte> message, uint64_t length, const Stamp& stamp);
  uint64_t examine_unreadable(std::span<const std::byte> message, uint64_t length);
  void describe(std::span<const std::byte> message, uint64_t length, const Stamp& sent);

  const Step& step_;
  uint32_t queue_pair_;
  uint16_t epoch_;
  uint64_t seed_;
  Tally& tally_;
  std::string name_;
  uint64_t next_ = 0;  // above all that came
  uint64_t last_ = 0;  // what came last
  // below next_
  std::set<uint64_t> missing_;
  uint64_t messages_ = 0;
  uint64_t verified_bytes_ = 0;
  uint64_t lost_ = 0;
  uint64_t unreadable_ = 0;  // came, nobody knows which
  std::vector<Gap> gaps_;    // of those that are missing the first
  std::vector<Gap> lost_gaps_;
};

/// "first at byte 17: expected 0x3c, found 0x3d; 1 byte and 1 bit differ". Thread-safe.
std::string text_of(const Difference& difference);

}  // namespace ringbolt::tools::verify
