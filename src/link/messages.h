#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "link/wake_table.h"

/// The control messages that processes of one host exchange over their UNIX sockets: codecs, pure.
/// One datagram is one message; descriptors travel beside it (SCM_RIGHTS). Layout: docs/formats/rendezvous.md.
namespace ringbolt::link {

// Little-endian. Both ends are processes of one user, of perhaps different releases: what is not understood ends the
// connection.
inline constexpr size_t kMaxMessageBytes = 128;
inline constexpr uint32_t kRendezvousVersion = 3;

/// First message each side sends. Descriptors: [bell eventfd, region table memfd, wake table memfd].
struct Hello {
  uint32_t slot = 0;           ///< process slot of the sender
  uint64_t incarnation = 0;    ///< random; tells two owners of one slot apart
  uint64_t nonce_address = 0;  ///< where `nonce` lies in the sender's memory: the probe for process_vm_readv
  uint64_t nonce = 0;
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// "Queue pair source_qpn receives from target_qpn through the lane in the attached memfd." Descriptors: [lane], then
/// that of the channel which its receives are announced at, then that of its sends, if these have one of their own.
struct Offer {
  uint32_t source_qpn = 0;
  uint32_t target_qpn = 0;
  uint32_t qp_type = 0;  ///< enum ibv_qp_type
  uint32_t pd_key = 0;   ///< protection domain of the source QP, for the check of region keys
  uint64_t nonce = 0;    ///< names this incarnation of the source QP
  std::array<uint8_t, 16> source_gid{};
  std::array<uint8_t, 16> target_gid{};
  WakeName receive_queue;  ///< where it completes its receives,
  WakeName send_queue;     ///< and its sends
  uint32_t mark = 0;       ///< its own in the marks of `receive_queue`
  // Numbers of the channels of these, which no other channel of the process has had or will have; 0: it has none.
  uint32_t receive_channel = 0;
  uint32_t send_channel = 0;
  friend bool operator==(const Offer&, const Offer&) = default;
};

/// Of no offer: no queue pair has it.
inline constexpr uint64_t kNoNonce = 0;

/// The queue pair that made the offer with this nonce was reset or destroyed in an orderly way; kNoNonce: there is no
/// such queue pair for datagrams, an offer to it was in vain.
struct Withdraw {
  uint32_t source_qpn = 0;
  uint32_t target_qpn = 0;
  uint64_t nonce = 0;
  friend bool operator==(const Withdraw&, const Withdraw&) = default;
};

/// Shareable memory of the sender. Descriptors: [arena memfd].
struct Arena {
  uint32_t arena_id = 0;
  uint64_t length_bytes = 0;
  friend bool operator==(const Arena&, const Arena&) = default;
};

/// The sender has freed that shareable memory: nothing of it is sent any more, and its place may be given out anew.
struct Release {
  uint32_t arena_id = 0;
  friend bool operator==(const Release&, const Release&) = default;
};

/// The lane that came with the offer of this nonce can't be used: nothing will ever be sent through it.
struct Refuse {
  uint32_t source_qpn = 0;  ///< that would have sent through it
  uint32_t target_qpn = 0;  ///< that offered it
  uint64_t nonce = 0;
  uint32_t error = 0;  ///< errno
  friend bool operator==(const Refuse&, const Refuse&) = default;
};

/// The sender exits in an orderly way.
struct Bye {
  friend bool operator==(const Bye&, const Bye&) = default;
};

/// The state of cables changed: look at the control page. From `ringbolt cut|heal`; exactly "RBPOKE1\n".
struct Poke {
  friend bool operator==(const Poke&, const Poke&) = default;
};

using Message = std::variant<Hello, Offer, Withdraw, Arena, Bye, Poke, Release, Refuse>;

/// The number of descriptors that belong to the message.
size_t descriptor_count(const Message& message);

/// Bytes of `message` in `out`; returns the length, at most kMaxMessageBytes.
size_t emit(const Message& message, std::span<std::byte, kMaxMessageBytes> out);

/// Nothing when the bytes are no message of this version: wrong length, magic, kind, version, slot or reserved bits.
std::optional<Message> parse(std::span<const std::byte> bytes);

}  // namespace ringbolt::link
