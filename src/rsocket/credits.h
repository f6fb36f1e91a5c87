#pragma once

#include <cstdint>

/// Who may send how much: message numbers of 16 bits that wrap. Each message that is counted (data, iomap) takes a
/// receive of the other side; that side grants as it posts receives again. Control messages are counted apart, by
/// SendSlots.
namespace ringbolt::rsocket {

/// How many messages the peer still takes. Not thread-safe.
class SendCredits {
 public:
  explicit SendCredits(uint16_t initial = 0) : limit_(initial) {}

  bool has_credit() const { return sent_ != limit_; }
  /// One message goes out. Precondition: has_credit().
  void spend() { ++sent_; }
  /// The peer takes messages up to this number. One that grants too much harms its own receive queue alone.
  void grant(uint32_t limit) { limit_ = static_cast<uint16_t>(limit); }

 private:
  uint16_t sent_ = 0;
  // Compared for equality alone, so the wrap at 2^16 needs no care: at most 65534 are granted at a time.
  uint16_t limit_;
};

/// What we take, and when it is time to say so. Not thread-safe.
class ReceiveCredits {
 public:
  /// `depth`: for how many messages receives are posted; the peer knows it as its initial credits.
  explicit ReceiveCredits(uint16_t depth = 0) : depth_(depth) {}

  /// A message that counts has come in, and its receive will be posted again.
  void arrived() { ++arrived_; }
  /// Half of what was granted is used up.
  /// So a peer that sends without pause seldom waits, and a credit message is rare.
  bool is_due() const { return static_cast<uint16_t>(arrived_ - told_) >= (depth_ + 1) / 2; }
  /// The number to tell the peer. From now on it counts as told.
  uint16_t take_grant() {
    told_ = arrived_;
    return static_cast<uint16_t>(arrived_ + depth_);
  }

 private:
  uint16_t depth_;
  uint16_t arrived_ = 0;
  uint16_t told_ = 0;
};

/// Entries of the send queue, a few of them kept back for control messages, so that data can never keep the credits
/// from flowing that it waits for. Not thread-safe.
class SendSlots {
 public:
  static constexpr uint32_t kControl = 4;  ///< what the protocol sets aside

  explicit SendSlots(uint32_t depth = kControl) : depth_(depth), data_(depth - kControl) {}

  bool has_data() const { return data_ > 0; }
  bool has_control() const { return control_ > 0; }
  /// Precondition: has_data(); likewise take_control().
  void take_data() { --data_; }
  void take_control() { --control_; }
  void return_data() { ++data_; }
  void return_control() { ++control_; }
  /// Nothing is under way.
  bool is_idle() const { return data_ + control_ == depth_; }

 private:
  uint32_t depth_;
  uint32_t data_;
  uint32_t control_ = kControl;
};

}  // namespace ringbolt::rsocket
