#pragma once

// Hot path: no allocation, lock, clock, virtual call or I/O per packet.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/congestion.h"
#include "transport/host.h"
#include "transport/operation.h"
#include "transport/sequence.h"
#include "transport/window_bits.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace ringbolt::transport {

/// The attributes of ibv_modify_qp, in codes where these are codes, and what the host adds.
struct RequesterAttributes {
  uint32_t dest_qp = 0;
  uint32_t first_psn = 0;  ///< sq_psn
  uint32_t mtu_bytes = 1024;
  uint32_t queue_depth = 1;  ///< operations that may be submitted and not yet completed
  uint8_t timeout_code = 0;  ///< 4.096 us * 2^code; 0: for ever
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;          ///< 7: for ever
  uint8_t max_rd_atomic = 1;      ///< READs and atomics under way at once; 0 counts as 1
  uint64_t least_timeout_ns = 0;  ///< a software peer may be off its core for a while: raise the timeout to this
  Congestion::Limits congestion{};
};

enum class RequesterFailure : uint8_t {
  retry_exceeded,
  rnr_retry_exceeded,
  remote_invalid_request,
  remote_access,
  remote_operation,
  local_protection,  ///< the host could not place an answer
  bad_response,      ///< an answer of the wrong length
};

/// What ended the queue pair: `operation` is always the oldest that is not complete.
struct Failure {
  uint32_t operation = 0;
  RequesterFailure why = RequesterFailure::retry_exceeded;
  friend bool operator==(const Failure&, const Failure&) = default;
};

struct RequesterCounters {
  uint64_t packets = 0;  ///< requests sent, again or not
  uint64_t resent = 0;
  uint64_t timeouts = 0;  ///< of the transport timer
  uint64_t probes = 0;    ///< packets sent again early to learn what is missing
  uint64_t sequence_naks = 0;
  uint64_t rnr_naks = 0;
  uint64_t implied_naks = 0;  ///< gaps in answers
  uint64_t ignored = 0;       ///< packets that answer nothing of ours
};

/// The requesting half of an RC queue pair: cuts operations into packets, and repeats them until they are acknowledged.
///
/// A READ is asked for in pieces of at most a window, each a READ request of its own on the wire, so that the answers
/// too obey the window; each piece counts for max_rd_atomic.
///
/// With a stranger it recovers by go-back-N, as the specification has it. After enable_selective() it resends only what
/// is missing, and asks early (a probe) when nothing comes back. docs/transport.md has the states. Not thread-safe.
/// Owns what it needs to repeat: operations, not their bytes. Used under the queue pair's lock for sending. Memory is
/// taken when it is made, and nothing throws after that.
class RcRequester {
 public:
  /// Allocates; throws std::bad_alloc.
  explicit RcRequester(const RequesterAttributes& attributes);

  bool can_submit() const { return submitted_ - completed_ < attributes_.queue_depth; }
  /// can_submit() holds. Operations are numbered 0, 1, 2...
  void submit(const Operation& operation);

  /// False: next_packet() has nothing now, whatever the time.
  bool may_have_packet() const { return !failure_ && (sending_ != submitted_ || lost_.any()); }
  /// The next packet to send; false when nothing may go out now: wait for a packet, a submit() or next_deadline_ns().
  /// What was handed out counts as sent.
  bool next_packet(uint64_t now_ns, OutPacket& out);

  /// An ACK, NAK, READ response, atomic or selective acknowledgement for this queue pair; others are ignored.
  /// The caller has seen that it comes from the peer (address, seal). What is old, doubled or answers nothing changes
  /// nothing.
  template <RequesterHost Host>
  void on_packet(uint64_t now_ns, const wire::PacketView& packet, Host& host);

  /// The path is known to have carried nothing until then: no timer counts what lies before.
  /// Of the caller's clock, in ns; 0 or what is over has no effect.
  void excuse(uint64_t until_ns);
  /// Call when next_deadline_ns() has passed, and then next_packet().
  void on_timer(uint64_t now_ns);
  /// UINT64_MAX: none.
  uint64_t next_deadline_ns() const;

  /// Operations 0 .. completed() - 1 succeeded (wraps).
  uint32_t completed() const { return completed_; }
  /// Nothing is submitted that isn't complete.
  bool is_idle() const { return completed_ == submitted_; }
  /// Once set, nothing more happens: the host completes `operation` with the error and flushes all after it.
  const std::optional<Failure>& failure() const { return failure_; }
  /// The peer is one of ours (transport/seal.h) and sends selective acknowledgements; before, they are a stranger's,
  /// and ignored.
  void enable_selective() { is_selective_ = true; }
  bool is_selective() const { return is_selective_; }

  const Congestion& congestion() const { return congestion_; }
  const RequesterCounters& counters() const { return counters_; }
  /// Packets on their way, as far as we know.
  uint32_t in_flight() const;

 private:
  // Sequences are PSNs that do not wrap, counted from 0 for the first packet; 64 bits last for ever.
  struct Entry {
    Operation operation;
    uint64_t first = 0;  ///< sequence of its first packet
    uint32_t packets = 0;
  };
  /// Of each packet (for READs: each expected response) between oldest_ and next_.
  struct Sent {
    uint64_t at_ns = 0;
    uint32_t order = 0;  ///< counts transmissions
    uint32_t operation = 0;
    bool is_answered = false;  ///< by data: READ, atomic
    bool is_resent = false;
    bool is_unheard = false;  ///< a packet went out with this PSN (of a READ's, the first) and nothing came back for it
  };
  struct Place {
    uint64_t sequence;
    uint32_t operation;
    uint32_t offset;
    uint32_t length;
  };

  Entry& entry(uint32_t operation) { return entries_[operation & queue_mask_]; }
  Sent& sent(uint64_t sequence) { return sent_[sequence % kWindowPackets]; }
  const Sent& sent(uint64_t sequence) const { return sent_[sequence % kWindowPackets]; }
  uint32_t psn_of(uint64_t sequence) const {
    return psn_add(attributes_.first_psn, static_cast<uint32_t>(sequence & wire::kPsnMask));
  }
  /// The sequence that a PSN from the peer means; false if it is none that we have sent and not seen acknowledged.
  bool find_sequence(uint32_t psn, uint64_t& sequence) const;

  // rc_requester.cpp: sending
  uint32_t window() const;
  bool send_new(uint64_t now_ns, OutPacket& out);
  bool send_again(uint64_t now_ns, OutPacket& out);
  void find_request(uint64_t& first, uint64_t& end) const;
  void mark_sent(uint64_t now_ns, uint64_t from, uint32_t packets, uint32_t operation, bool is_resent);
  void describe(uint64_t sequence, uint32_t packets, uint32_t operation, bool is_resent, OutPacket& out);
  void describe_data(const Entry& entry, uint32_t index, OutPacket& out) const;
  bool wants_ack(bool is_last, bool is_resent);

  // rc_acknowledgement.cpp: what comes back
  void on_acknowledge(uint64_t now_ns, const wire::Headers& headers);
  void on_selective(uint64_t now_ns, const wire::PacketView& packet);
  void take_hearsay(uint64_t now_ns, uint64_t missing, const wire::SelectiveAck& ack);
  void on_nak(uint64_t now_ns, const wire::Headers& headers);
  std::optional<Place> find_answer(uint64_t now_ns, const wire::PacketView& packet);
  void take_answer(uint64_t now_ns, const Place& place);
  void acknowledge_below(uint64_t now_ns, uint64_t sequence);
  void note_delivered(uint64_t now_ns, uint64_t sequence);
  void advance(uint64_t now_ns);
  uint64_t advance_answered(uint64_t end);
  void look_for_gap(uint64_t now_ns);
  void find_lost_answers(uint64_t now_ns);
  void find_lost_requests(uint64_t now_ns, uint64_t missing, const wire::SelectiveAck& ack);
  bool is_overtaken(uint64_t sequence) const;
  bool is_read(uint64_t sequence) { return entry(sent(sequence).operation).operation.kind == Operation::read; }
  void read_again_after(uint64_t end, uint32_t operation);
  bool awaits_earlier_read(uint64_t sequence);
  void rewind(uint64_t from, bool trusts_hearsay);

  // rc_timers.cpp
  void on_transport_timeout(uint64_t now_ns);
  void probe(uint64_t now_ns);
  uint64_t probe_deadline_ns() const;
  void fail(RequesterFailure why);

  RequesterAttributes attributes_;
  uint64_t timeout_ns_;  ///< 0: none
  uint32_t queue_mask_;
  std::vector<Entry> entries_;
  std::vector<Sent> sent_;
  Congestion congestion_;

  // Operations: completed_ <= sending_ <= submitted_.
  uint32_t completed_ = 0;
  uint32_t sending_ = 0;
  uint32_t submitted_ = 0;
  uint64_t submitted_end_ = 0;  ///< sequence after the last packet of what is submitted

  // Packets: oldest_ <= acknowledged_ <= next_ <= oldest_ + kWindowPackets.
  uint64_t oldest_ = 0;        ///< the first that isn't done with
  uint64_t acknowledged_ = 0;  ///< the peer executed all before it; READs may still miss their data
  uint64_t next_ = 0;          ///< the first that was never sent
  WindowBits delivered_;       ///< the peer has it (hearsay until acknowledged_ says so); of READs: we have the data
  WindowBits lost_;            ///< to be sent again
  WindowBits piece_ends_;      ///< the last packet of a READ request
  uint64_t reread_end_ = 0;    ///< after the last packet of a READ that was asked for again
  uint32_t answers_under_way_ = 0;

  bool is_selective_ = false;
  bool has_seen_gap_ = false;  ///< go-back-N: the gap at oldest_ is being dealt with
  uint32_t send_order_ = 0;
  uint32_t newest_order_ = 0;     ///< the latest transmission that is known to have arrived
  uint32_t unasked_packets_ = 0;  ///< sent since the last AckReq
  uint64_t asked_end_ = 0;        ///< after the last packet that the peer has to answer
  uint64_t newest_rtt_ns_ = 0;

  uint64_t progress_at_ns_ = 0;  ///< since when the transport timer runs
  uint64_t activity_at_ns_ = 0;  ///< since when the probe's timer runs
  uint64_t resume_at_ns_ = 0;    ///< 0 or, after an RNR NAK, when to go on
  uint32_t probes_in_row_ = 0;
  uint8_t retries_left_;
  uint8_t rnr_retries_left_;
  std::optional<Failure> failure_;
  RequesterCounters counters_;
};

template <RequesterHost Host>
void RcRequester::on_packet(uint64_t now_ns, const wire::PacketView& packet, Host& host) {
  if (failure_) {
    return;
  }
  const uint8_t opcode = packet.headers.bth.opcode;
  if (opcode == wire::kRcAcknowledge) {
    on_acknowledge(now_ns, packet.headers);
  } else if (opcode == wire::kSelectiveAck) {
    on_selective(now_ns, packet);
  } else if (opcode == wire::kRcAtomicAcknowledge || wire::is_read_response(opcode)) {
    const std::optional<Place> place = find_answer(now_ns, packet);
    if (!place) {
      return;
    }
    const bool is_placed =
        opcode == wire::kRcAtomicAcknowledge
            ? host.place_atomic(place->operation, packet.headers.atomic_ack)
            : packet.payload.empty() || host.place_read(place->operation, place->offset, packet.payload);
    if (is_placed) {
      take_answer(now_ns, *place);
    } else {
      fail(RequesterFailure::local_protection);
    }
  } else {
    ++counters_.ignored;
  }
}

}  // namespace ringbolt::transport
