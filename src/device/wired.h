#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "device/counting.h"
#include "link/udp_message.h"
#include "transport/rc_requester.h"
#include "transport/rc_responder.h"
#include "transport/uc_requester.h"
#include "transport/uc_responder.h"
#include "transport/uc_window.h"
#include "wire/flow.h"
#include "wire/icrc.h"

namespace ringbolt::device {

/// An RC or UC queue pair's tie to one over the network: the protocol engines, of which it has those of its type. The
/// requesting half is guarded by the queue pair's send lock, the responding half by its receive lock.
struct Wired {
  link::UdpPath path;
  uint32_t remote_qpn = 0;
  uint32_t mtu_bytes = 0;

  // Responding half, from RTR on.
  std::optional<transport::RcResponder> rc_responder;
  std::optional<transport::UcResponder> uc_responder;
  std::optional<transport::ResponderFailure> failure;  ///< what the engine's host was told

  // Requesting half, from RTS on.
  std::optional<transport::RcRequester> rc_requester;
  std::optional<transport::UcRequester> uc_requester;
  std::optional<transport::UcWindow> uc_window;
  std::vector<uint32_t> places;  ///< in the send queue, by operation number modulo the size, a power of two
  uint32_t submitted = 0;        ///< operations
  uint32_t greetings = 0;        ///< sent of our own accord
  uint64_t next_greeting_ns = 0;

  /// Of each engine what the port's counters know, under that half's lock.
  ToldCounters told;

  bool knows_sender = false;  ///< who sends us requests is one of ours, and nobody else is; of the responding half

  uint32_t completed() const {
    return rc_requester ? rc_requester->completed() : uc_requester ? uc_requester->completed() : 0;
  }
  bool can_submit() const {
    return rc_requester ? rc_requester->can_submit() : uc_requester && uc_requester->can_submit();
  }
  /// Of the requester there is.
  bool next_packet(uint64_t now_ns, transport::OutPacket& packet) {
    if (rc_requester) {
      return rc_requester->next_packet(now_ns, packet);
    }
    if (uc_requester->is_idle() || !uc_window->may_send(now_ns) || !uc_requester->next_packet(now_ns, packet)) {
      return false;
    }
    packet.headers.bth.wants_ack = uc_window->on_sent(packet.headers.bth.psn);
    return true;
  }
  uint64_t next_deadline_ns() const {
    return rc_requester ? rc_requester->next_deadline_ns() : uc_window ? uc_window->next_deadline_ns() : UINT64_MAX;
  }
  /// What only peers of ours understand.
  void enable_extras() {
    if (rc_requester) {
      rc_requester->enable_selective();
    } else {
      uc_window->enable();
    }
  }
  bool is_complete(uint32_t operation) const { return static_cast<int32_t>(completed() - operation) > 0; }
};

/// Room that any packet finds enough.
inline constexpr size_t kMostPacketBytes = link::kMaxUdpPacketBytes - wire::kIcrcBytes;

/// Bytes of a path MTU as the verbs number it.
constexpr uint32_t mtu_bytes(ibv_mtu mtu) { return 128U << static_cast<uint32_t>(mtu); }

}  // namespace ringbolt::device
