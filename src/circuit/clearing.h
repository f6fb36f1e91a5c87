#pragma once

// Hot path: post(), heard() and tell() do not allocate, lock or wait.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "circuit/clear_to_send.h"
#include "circuit/registrations.h"

namespace ringbolt::circuit {

/// The receiver's end of clearances (clearances.h): which receives the sender is told of. Only long ones are worth it;
/// but those between them are told of, too, since a sender must know all to tell which message belongs to which. Where
/// all receives so far are full, a base says so in their place: so short messages alone cost nothing. What is not known
/// to have been heard is kept, and said again by another rail when the one that carried it fails. Not thread-safe. Of
/// the receive circuit, under its lock. Its memory is bounded by kMostKept: a sender that never says what it has
/// heard holds up clearances, not the circuit.
class Clearing {
 public:
  /// Receives that are kept; beyond, the sender is told of none until there can be a base.
  static constexpr uint32_t kMostKept = 64;
  /// Frames that are under way at most: for so many more the sender's receives stand ready (kAnswerReceives).
  static constexpr uint32_t kMostFrames = 8;

  /// `least_bytes`: what a buffer must hold to be worth it.
  explicit Clearing(uint64_t least_bytes) : least_bytes_(least_bytes) {}

  bool is_long(const Receive& receive, uint32_t n_parts) const;
  /// A receive that has been posted. `registered`: of each buffer, or null. `base`: all receives before it are full,
  /// and no message from this one on is matched. Sets the receive's `clearance`, and `is_cleared` of the buffers that
  /// may be written to. `registered` is read here alone: the keys are copied, and whoever registered it must not
  /// remove it before the receive is done.
  void post(Receive& receive, const Registered* const* registered, std::optional<uint32_t> base);
  /// FrameHeader::heard of a message or piece. What is older than what was heard before is passed over. Eight bits
  /// are enough, since no more than kMostKept are told and not heard.
  void heard(uint8_t lowest_bits);

  /// A rail that may be written by.
  struct WrittenRail {
    uint16_t number = 0;
    size_t device = 0;
  };
  bool has_something_to_tell() const { return told_ != due_ && n_frames_ < kMostFrames; }
  /// The next frame into `to`; its length. Before this, has_something_to_tell(). At most kMostRails rails. `to` stays
  /// untouched until the frame has been sent.
  uint32_t tell(FrameHeader header, std::span<const WrittenRail> rails, std::span<std::byte, kClearToSendBytes> to);
  /// The rail that carried frames has failed: whatever may not have been heard is told again.
  void restart() {
    told_ = first_unheard_;
    n_frames_ = 0;
  }

 private:
  struct Kept {
    ClearedReceive receive;
    std::array<DeviceKeys, kMostParts> keys{};
    bool is_base = false;
    uint32_t base_message = 0;
  };
  Kept& kept(uint32_t number) { return kept_[number % kMostKept]; }
  void put_keys(Kept& of, std::span<const WrittenRail> rails, ClearedReceive& to) const;

  const uint64_t least_bytes_;
  std::array<Kept, kMostKept> kept_;
  // Numbers of receives, in this order: All before it are known to the sender.
  uint32_t first_unheard_ = 0;
  uint32_t told_ = 0;
  uint32_t due_ = 0;  // up to here there is something worth telling
  uint32_t next_ = 0;
  bool is_known_ = false;                       // what comes next follows what is kept; else it takes a base
  std::array<uint32_t, kMostFrames> frames_{};  // of each that may not have been heard: the number after its last one
  uint32_t first_frame_ = 0;
  uint32_t n_frames_ = 0;
  ClearToSend frame_;
};

}  // namespace ringbolt::circuit
