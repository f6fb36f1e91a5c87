#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringbolt::stream {

/// Why a stream ended, or was never made. Those from bad_command_length to out_of_send_slots are things that a peer
/// said and that the protocol forbids (docs/formats/valkey-rdma.md).
/// The numbers are the C interface's (RINGBOLT_STREAM_*): new ones go to the end.
enum class CloseReason : uint8_t {
  none,
  local,               ///< this side closed it
  peer_closed,         ///< the peer disconnected
  bad_command_length,  ///< a SEND of other than 32 bytes
  bad_opcode,          ///< an unknown command, or one that this role is never told
  bad_rx_length,       ///< an announced buffer of no bytes, too many, or beyond the end of memory
  over_budget,         ///< no memory for a sending buffer of the announced length
  rx_length_changed,   ///< a later announcement of another length than the first
  imm_overrun,         ///< more bytes than are left of the receive buffer, or before it was announced
  imm_underrun,        ///< fewer bytes than the message itself brought
  imm_flood,           ///< too many messages of no bytes
  command_flood,       ///< too many commands that nobody asked for
  feature,             ///< the peer turned on what was not offered
  out_of_send_slots,   ///< the peer takes no commands, and goes on asking for them
  peer_lost,           ///< a request was given up by the device: the peer does not answer any more
  work_failed,         ///< the device refused or failed a request
  refused,             ///< by the peer: nobody listens, or it does not want us
  unreachable,         ///< no way leads to the peer, or it did not answer
  too_many,            ///< the listener's limit of connections
  not_allowed,         ///< the peer's address is not on the listener's list
  handshake_timeout,   ///< asked for a connection and did not complete it
  no_resources,        ///< no memory, descriptor or queue pair was left for it here
};
inline constexpr size_t kCloseReasons = static_cast<size_t>(CloseReason::no_resources) + 1;

/// As it stands in messages and statistics. Pure.
/// The text ends in a 0, as those of words_of() do: the C interface gives it out. Any number is safe.
constexpr std::string_view name_of(CloseReason reason) {
  constexpr std::array<std::string_view, kCloseReasons> kNames = {"none",
                                                                  "local",
                                                                  "peer-closed",
                                                                  "bad-command-length",
                                                                  "bad-opcode",
                                                                  "bad-rx-length",
                                                                  "over-budget",
                                                                  "rx-length-changed",
                                                                  "imm-overrun",
                                                                  "imm-underrun",
                                                                  "imm-flood",
                                                                  "command-flood",
                                                                  "feature",
                                                                  "out-of-send-slots",
                                                                  "peer-lost",
                                                                  "work-failed",
                                                                  "refused",
                                                                  "unreachable",
                                                                  "too-many",
                                                                  "not-allowed",
                                                                  "handshake-timeout",
                                                                  "no-resources"};
  return static_cast<size_t>(reason) < kNames.size() ? kNames[static_cast<size_t>(reason)] : "unknown";
}

/// How many streams ended for each reason.
using CloseCounts = std::array<uint64_t, kCloseReasons>;

}  // namespace ringbolt::stream
