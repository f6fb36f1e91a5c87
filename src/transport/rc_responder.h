#pragma once

// Hot path: no allocation, lock, clock, virtual call or I/O per packet.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/host.h"
#include "transport/inbound_message.h"
#include "transport/operation.h"
#include "transport/reorder_buffer.h"
#include "transport/response_queue.h"
#include "transport/sequence.h"

namespace ringbolt::transport {

struct ResponderAttributes {
  uint32_t dest_qp = 0;    ///< where answers go to
  uint32_t first_psn = 0;  ///< rq_psn
  uint32_t mtu_bytes = 1024;
  uint8_t max_dest_rd_atomic = 1;  ///< 0 counts as 1: whether READs are allowed is the host's to say
  uint8_t min_rnr_timer = 0;       ///< code
};

struct ResponderCounters {
  uint64_t packets = 0;  ///< requests executed
  uint64_t duplicates = 0;
  uint64_t out_of_sequence = 0;
  uint64_t held = 0;  ///< kept for later, with a selective peer
  uint64_t rnr_naks = 0;
  uint64_t dropped = 0;  ///< neither executed, held nor answered
};

/// The responding half of an RC queue pair: executes requests in order, once, and answers.
///
/// Stricter than the specification nowhere; more lenient in one thing: READs and atomics beyond max_dest_rd_atomic wait
/// (the request counts as lost until there is room) instead of killing the connection. Not thread-safe.
/// Used under the queue pair's lock for receiving. Memory is taken when it is made, and by enable_selective().
class RcResponder {
 public:
  /// Allocates; throws std::bad_alloc.
  explicit RcResponder(const ResponderAttributes& attributes);

  /// A request for this queue pair; others are ignored. After host.fail() nothing is executed any more.
  template <ResponderHost Host>
  void on_packet(uint64_t now_ns, const wire::PacketView& packet, Host& host);

  /// The next answer; false: none. Acknowledgements are merged until they are fetched, so feed a batch of packets
  /// first. READ responses are not limited here: a caller with other queue pairs fetches some, and comes back.
  /// What was handed out counts as sent: if it gets lost, the peer asks again.
  bool next_packet(uint64_t now_ns, OutPacket& out);
  bool has_packet() const { return !responses_.is_empty(); }
  /// All that it has to say is that everything has come.
  bool has_acknowledgement() const { return responses_.is_acknowledgement(); }

  /// The region that the READ response just fetched lies in has gone: NAK 62 goes out in its place. The host then
  /// treats it as fail(remote_access).
  void refuse_read();

  /// After a failure: its NAK once more, since nobody asks for it again. False: nothing has failed.
  bool repeat_refusal();

  /// From now on, out-of-order packets are kept and described instead of refused. Allocates (address space, see
  /// ReorderBuffer); throws std::bad_alloc. Call when the peer has proved to be one of ours, and when nothing comes
  /// here that is not from it (transport/seal.h): who may send early packets need not know the next number.
  void enable_selective();
  bool is_selective() const { return early_ != nullptr; }

  /// IBV_QP_MIN_RNR_TIMER may change while connected.
  void set_min_rnr_timer(uint8_t code) { attributes_.min_rnr_timer = code; }
  bool has_failed() const { return has_failed_; }
  /// In the middle of a message.
  bool has_open_message() const { return message_.kind != InboundMessage::none; }
  uint32_t expected_psn() const { return psn_of(expected_); }
  const ResponderCounters& counters() const { return counters_; }

 private:
  /// What became of a request whose turn it was.
  // `waits`: nothing has been done, and the peer sends it again.
  enum class Turn : uint8_t { executed, waits, failed };
  struct Executed {
    uint32_t psn;
    uint64_t value;
  };

  uint32_t psn_of(uint64_t sequence) const {
    return psn_add(attributes_.first_psn, static_cast<uint32_t>(sequence & wire::kPsnMask));
  }

  // rc_responder_steps.h
  template <class Host>
  Turn execute(const wire::PacketView& packet, Host& host);
  template <class Host>
  Turn execute_send(const wire::PacketView& packet, Host& host);
  template <class Host>
  Turn execute_write(const wire::PacketView& packet, Host& host);
  template <class Host>
  Turn execute_read(const wire::PacketView& packet, Host& host);
  template <class Host>
  Turn execute_atomic(const wire::PacketView& packet, Host& host);
  template <class Host>
  Turn finish_message(const wire::PacketView& packet, Received::Kind kind, Host& host);
  template <class Host>
  void on_duplicate(const wire::PacketView& packet, uint32_t packets_behind, Host& host);
  template <class Host>
  Turn fail(uint8_t syndrome, ResponderFailure why, Host& host);

  // rc_responder.cpp
  void refuse(uint8_t syndrome, uint32_t psn);
  Turn not_ready();
  void on_early(const wire::PacketView& packet, uint64_t sequence);
  void advance(uint32_t packets, bool wants_ack);
  void acknowledge();
  void push_read(uint32_t psn, const wire::Reth& reth, uint32_t packets);
  void push_atomic(uint32_t psn, uint64_t value);
  void remember(uint32_t psn, uint64_t value);
  const Executed* recall(uint32_t psn) const;
  void describe_read(Response& response, OutPacket& out);

  ResponderAttributes attributes_;
  uint64_t expected_ = 0;       ///< sequence of the next request
  uint32_t messages_ = 0;       ///< MSN
  uint32_t last_read_psn_ = 0;  ///< of the READ response last handed out
  InboundMessage message_;
  bool is_silent_ = false;     ///< a NAK is out: say nothing of packets ahead until it is repaired
  bool is_not_ready_ = false;  ///< that NAK was an RNR NAK: keep nothing either
  bool has_failed_ = false;
  Response refusal_;  ///< the NAK of that failure
  ResponseQueue responses_;
  std::vector<Executed> atomics_;  ///< the last few, for duplicates
  uint32_t atomics_done_ = 0;
  std::unique_ptr<ReorderBuffer> early_;
  ResponderCounters counters_;
};

}  // namespace ringbolt::transport

#include "transport/rc_responder_steps.h"
