#pragma once

#include <cstdint>
#include <span>

#include "stream/close_reason.h"
#include "stream/control_message.h"
#include "stream/protocol.h"

namespace ringbolt::fuzz {

/// What docs/formats/valkey-rdma.md says that an end does with what its peer says, written a second time: for each
/// message the reasons that it may end for now, `none` among them if it may live on. Not thread-safe.
class StreamRules {
 public:
  using Reasons = uint32_t;  ///< a bit each
  static constexpr Reasons only(stream::CloseReason reason) { return Reasons{1} << static_cast<unsigned>(reason); }

  StreamRules(stream::Role role, uint32_t longest) : role_(role), longest_(longest) {}

  /// A SEND of the peer.
  Reasons command(std::span<const std::byte> bytes) const {
    using stream::CloseReason;
    if (bytes.size() != stream::kControlBytes) {
      return only(CloseReason::bad_command_length);
    }
    // Big-endian, as the format has it: not read by the code under test.
    const auto number = [&](size_t at, size_t length) {
      uint64_t value = 0;
      for (size_t i = 0; i < length; ++i) {
        value = value << 8U | std::to_integer<uint64_t>(bytes[at + i]);
      }
      return value;
    };
    const uint64_t opcode = number(0, 2);
    const Reasons lives = only(CloseReason::none) | only(CloseReason::command_flood);
    if (opcode > 3 || (opcode < 2 && role_ == stream::Role::client)) {
      return only(CloseReason::bad_opcode);
    }
    if (opcode < 2) {
      const bool is_choice_of_any = opcode == 1 && number(24, 8) != 0;
      return is_choice_of_any ? only(CloseReason::feature) | only(CloseReason::command_flood)
                              : lives | only(CloseReason::out_of_send_slots);
    }
    if (opcode == 2) {
      return lives;
    }
    const auto length = static_cast<uint32_t>(number(24, 4));
    if (first_length_ != 0 && length != first_length_) {
      return only(CloseReason::rx_length_changed);
    }
    if (length == 0 || length > longest_ || number(16, 8) > UINT64_MAX - length) {
      return only(CloseReason::bad_rx_length);
    }
    return lives | only(CloseReason::over_budget);
  }
  /// A WRITE_WITH_IMM that brought so many bytes by itself.
  Reasons data(uint32_t immediate, uint32_t bytes) const {
    using stream::CloseReason;
    if (immediate > left_) {
      return only(CloseReason::imm_overrun);
    }
    if (!is_announced_) {
      return only(CloseReason::imm_overrun);
    }
    if (immediate < bytes) {
      return only(CloseReason::imm_underrun);
    }
    return only(CloseReason::none) | only(immediate == 0 ? CloseReason::imm_flood : CloseReason::out_of_send_slots);
  }

  // What was lived through.
  void took(const stream::ControlMessage& message) {
    if (message.opcode == stream::Opcode::register_xfer_memory) {
      first_length_ = message.length;
    }
  }
  void took_data(uint32_t immediate) { left_ -= immediate; }
  /// A command of the end itself. False: it must not say that now.
  bool may_say(const stream::ControlMessage& message) {
    switch (message.opcode) {
      case stream::Opcode::register_xfer_memory:
        if (left_ != 0) {
          return false;  // the buffer before is not full
        }
        is_announced_ = true;
        left_ = message.length;
        return true;
      case stream::Opcode::set_client_feature:
        return false;
      default:
        return role_ == stream::Role::server;
    }
  }

 private:
  stream::Role role_;
  uint32_t longest_;
  uint32_t first_length_ = 0;  // that the peer announced
  uint32_t left_ = 0;          // of the buffer that we announced
  bool is_announced_ = false;
};

}  // namespace ringbolt::fuzz
