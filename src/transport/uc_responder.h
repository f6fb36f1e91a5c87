#pragma once

// Hot path: no allocation, lock, clock, virtual call or I/O per packet.

#include <cstdint>

#include "transport/host.h"
#include "transport/inbound_message.h"
#include "transport/sequence.h"

namespace ringbolt::transport {

/// A PSN at most this far behind is late; one further behind is a sender that began anew.
inline constexpr int32_t kLatePackets = 4096;

struct UcResponderAttributes {
  uint32_t first_psn = 0;  ///< rq_psn
  uint32_t mtu_bytes = 1024;
};

struct UcResponderCounters {
  uint64_t packets = 0;  ///< executed
  uint64_t dropped = 0;  ///< packets of messages that were given up, or for which no receive was posted
  uint64_t messages_dropped = 0;
};

/// The responding half of a UC queue pair. A message that misses a packet is dropped as a whole: the receive that it
/// had taken waits for the next message, and a WRITE leaves no completion (though its first bytes are written). It goes
/// on at the next packet that begins a message, with that packet's PSN. A packet a little behind is a late or doubled
/// one and dropped, which the specification leaves out since its fabric does neither. Not thread-safe.
///
/// A message longer than its receive is a local length error and fails the queue pair; a WRITE without permission is
/// dropped, since nobody could be told.
/// Used under the queue pair's lock for receiving. Allocates nothing.
class UcResponder {
 public:
  explicit UcResponder(const UcResponderAttributes& attributes)
      : attributes_(attributes), expected_psn_(attributes.first_psn) {}

  /// A request for this queue pair; others are ignored. Uses take_receive, place_receive, complete_receive, may_access,
  /// write and fail of the host. A receive that was taken stays taken until complete_receive() or fail():
  /// take_receive() is not called again for the message that gets it instead.
  template <ResponderHost Host>
  void on_packet(uint64_t now_ns, const wire::PacketView& packet, Host& host);

  bool has_failed() const { return has_failed_; }
  const UcResponderCounters& counters() const { return counters_; }

 private:
  template <class Host>
  bool execute_send(const wire::PacketView& packet, Host& host);
  template <class Host>
  bool execute_write(const wire::PacketView& packet, Host& host);
  template <class Host>
  bool take_receive(Host& host);
  template <class Host>
  void complete(const wire::PacketView& packet, Received::Kind kind, Host& host);
  void drop_message();

  UcResponderAttributes attributes_;
  uint32_t expected_psn_;
  InboundMessage message_;
  bool has_receive_ = false;
  bool is_dropping_ = false;  ///< until a message begins
  bool has_failed_ = false;
  UcResponderCounters counters_;
};

}  // namespace ringbolt::transport

#include "transport/uc_responder_steps.h"
