#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace ringbolt::engine {

/// Classes of receives: of a message that has made so many hops before, and one more for beats.
inline constexpr uint32_t kHopClasses = 13;
inline constexpr uint32_t kControlClass = kHopClasses;
inline constexpr uint32_t kClasses = kHopClasses + 1;
static_assert(kClasses <= 32, "a bit for each");

/// How the receives of one queue pair are shared by classes: some are kept for each, which others can't use, so that a
/// chunk with more hops behind it never waits for one with fewer (docs/design-notes.md, relay). The rest is for all.
/// It must be the same at both ends of a cable.
struct CreditPlan {
  uint32_t n_receives = 0;
  uint32_t n_hop_classes = 1;  ///< in use: hops of the longest path, kHopClasses at most
  uint32_t kept_for_hop = 1;
  uint32_t kept_for_control = 0;

  /// None for paths that are longer than was thought when the cables were connected: those share what is left.
  uint32_t kept(uint32_t buffer_class) const {
    return buffer_class == kControlClass ? kept_for_control : buffer_class < n_hop_classes ? kept_for_hop : 0;
  }
  // The plan leaves some: kHopClasses and kKeptForControl are fewer than the receives of either size.
  uint32_t shared() const { return n_receives - n_hop_classes * kept_for_hop - kept_for_control; }
};

/// What a receiver says of messages of one queue pair that have not come: so many since the connection, and the numbers
/// of the latest.
struct LostMessages {
  static constexpr uint32_t kTold = 32;
  uint32_t count = 0;
  std::array<uint16_t, kTold> latest = {};  ///< [count % kTold] is the next to be written

  void add(uint16_t number) { latest[count++ % kTold] = number; }
  friend bool operator==(const LostMessages&, const LostMessages&) = default;
};

/// The sender's side: which of the peer's receives are taken. Pure. Not thread-safe.
/// What it hears is the peer's word, and can at worst stop this cable.
class SenderCredit {
 public:
  explicit SenderCredit(const CreditPlan& plan) : shared_(plan.shared()) {
    for (uint32_t i = 0; i < kClasses; ++i) {
      kept_[i] = plan.kept(i);
    }
  }

  bool may_send(uint32_t buffer_class) const {
    return taken_[buffer_class] < kept_[buffer_class] || used_shared_ < shared_;
  }
  /// The number that the message gets.
  uint16_t send(uint32_t buffer_class) {
    take(buffer_class, taken_[buffer_class] + 1);
    class_of_[static_cast<uint16_t>(number_)] = static_cast<uint8_t>(buffer_class);
    return static_cast<uint16_t>(number_++);
  }
  /// The number of the next message, which travels with its last 16 bits.
  uint32_t number() const { return number_; }

  /// The peer has freed so many of a class since the connection, modulo 2^16. False: more than were taken, which is no
  /// word of an honest peer.
  bool hear_freed(uint32_t buffer_class, uint16_t freed) {
    const auto newly = static_cast<uint16_t>(freed - freed_[buffer_class]);
    if (newly == 0) {
      return true;
    }
    if (newly > taken_[buffer_class]) {
      return static_cast<uint16_t>(freed_[buffer_class] - freed) < 0x8000;  // an older word that comes late
    }
    freed_[buffer_class] = freed;
    take(buffer_class, taken_[buffer_class] - newly);
    return true;
  }

  /// The peer misses these. False: more than it can tell of have got lost, so that the connection must begin anew.
  bool hear_lost(const LostMessages& lost) {
    const uint32_t n_new = lost.count - n_lost_;
    if (n_new > LostMessages::kTold) {
      return static_cast<int32_t>(n_new) < 0;  // an older word that comes late
    }
    for (; n_lost_ != lost.count; ++n_lost_) {
      const uint32_t buffer_class = class_of_[lost.latest[n_lost_ % LostMessages::kTold]];
      take(buffer_class, taken_[buffer_class] - (taken_[buffer_class] > 0 ? 1 : 0));
    }
    return true;
  }

  uint32_t taken(uint32_t buffer_class) const { return taken_[buffer_class]; }
  bool is_idle() const {
    for (const uint32_t taken : taken_) {
      if (taken != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  /// Changes how many of a class are taken, and of those that all share.
  void take(uint32_t buffer_class, uint32_t taken) {
    const uint32_t kept = kept_[buffer_class];
    const uint32_t before = taken_[buffer_class];
    used_shared_ += (taken > kept ? taken - kept : 0) - (before > kept ? before - kept : 0);
    taken_[buffer_class] = taken;
  }

  uint32_t shared_;
  uint32_t used_shared_ = 0;
  uint32_t number_ = 0;
  uint32_t n_lost_ = 0;
  std::array<uint32_t, kClasses> kept_ = {};
  std::array<uint32_t, kClasses> taken_ = {};
  std::array<uint16_t, kClasses> freed_ = {};
  // [number]: of as many as numbers tell apart. One that is missed is told of late, when thousands have followed it.
  std::vector<uint8_t> class_of_ = std::vector<uint8_t>(1U << 16U);
};

/// The receiver's side: what has come, what it has freed, and what of that the peer knows. Pure. Not thread-safe.
/// Counts modulo 2^16 are differences to the peer, so that words that get lost or come late do no harm.
class ReceiverCredit {
 public:
  /// A message with a number of these last 16 bits. Those between the last one and this one are lost: a queue pair
  /// keeps its order. False: it had been counted as lost itself, so that nobody owes its credit any more.
  [[nodiscard]] bool receive(uint16_t number) {
    const auto ahead = static_cast<int16_t>(number - static_cast<uint16_t>(expected_));
    if (ahead != 0) [[unlikely]] {
      if (ahead < 0) {
        return false;
      }
      (void)miss_before(expected_ + static_cast<uint32_t>(ahead));
    }
    ++expected_;
    return true;
  }
  /// The peer has sent all numbers before this one, long enough ago. False: more are missing than numbers tell apart.
  [[nodiscard]] bool miss_before(uint32_t number) {
    const auto n_missing = static_cast<int32_t>(number - expected_);
    if (n_missing > UINT16_MAX) {
      return false;
    }
    for (int32_t i = 0; i < n_missing; ++i) {
      lost_.add(static_cast<uint16_t>(expected_++));
    }
    return true;
  }
  const LostMessages& lost() const { return lost_; }
  uint32_t expected() const { return expected_; }

  void free(uint32_t buffer_class) {
    ++freed_[buffer_class];
    ++n_untold_;
    untold_classes_ |= 1U << buffer_class;
  }
  uint16_t freed(uint32_t buffer_class) const { return freed_[buffer_class]; }
  void tell(uint32_t buffer_class) {
    n_untold_ -= static_cast<uint16_t>(freed_[buffer_class] - told_[buffer_class]);
    told_[buffer_class] = freed_[buffer_class];
    untold_classes_ &= ~(1U << buffer_class);
  }
  /// A bit for each class of which the peer does not know all.
  uint32_t untold_classes() const { return untold_classes_; }
  uint32_t n_untold(uint32_t buffer_class) const {
    return static_cast<uint16_t>(freed_[buffer_class] - told_[buffer_class]);
  }
  /// Freed and not told, of all classes.
  uint32_t n_untold() const { return n_untold_; }

 private:
  uint32_t expected_ = 0;
  LostMessages lost_;
  std::array<uint16_t, kClasses> freed_ = {};
  std::array<uint16_t, kClasses> told_ = {};
  uint32_t n_untold_ = 0;
  uint32_t untold_classes_ = 0;
};

}  // namespace ringbolt::engine
