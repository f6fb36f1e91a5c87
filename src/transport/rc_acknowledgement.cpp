// What comes back to a requester: how far the peer is, and what is missing.

#include <algorithm>
#include <bit>

#include "transport/rc_requester.h"
#include "wire/syndrome.h"

namespace ringbolt::transport {
namespace {

// A packet may be overtaken by this many later ones before it counts as lost.
// Much as TCP's three duplicate acknowledgements (RFC 5681, 3.2), but counted in transmissions, so that a repetition
// that gets lost is noticed, too.
constexpr int32_t kReorderPackets = 3;

}  // namespace

// The window is far shorter than 2^23, so that a PSN stands for one sequence.
bool RcRequester::find_sequence(uint32_t psn, uint64_t& sequence) const {
  const int32_t ahead = psn_distance(psn, psn_of(oldest_));
  sequence = oldest_ + static_cast<uint64_t>(static_cast<int64_t>(ahead));
  return ahead >= 0 && sequence < next_;
}

void RcRequester::on_acknowledge(uint64_t now_ns, const wire::Headers& headers) {
  uint64_t sequence = 0;
  if (!find_sequence(headers.bth.psn, sequence)) {
    ++counters_.ignored;  // an old one, or one for what was never sent
    return;
  }
  if (!wire::is_ack(headers.aeth.syndrome)) {
    on_nak(now_ns, headers);
    return;
  }
  acknowledge_below(now_ns, sequence + 1);
  look_for_gap(now_ns);
}

void RcRequester::on_nak(uint64_t now_ns, const wire::Headers& headers) {
  const uint8_t syndrome = headers.aeth.syndrome;
  uint64_t sequence = 0;
  find_sequence(headers.bth.psn, sequence);
  acknowledge_below(now_ns, sequence);
  look_for_gap(now_ns);
  if (wire::is_rnr_nak(syndrome)) {
    if (resume_at_ns_ != 0) {
      return;  // waiting already
    }
    ++counters_.rnr_naks;
    if (rnr_retries_left_ == 0) {
      fail(RequesterFailure::rnr_retry_exceeded);
      return;
    }
    rnr_retries_left_ = static_cast<uint8_t>(rnr_retries_left_ - (attributes_.rnr_retry == 7 ? 0 : 1));
    rewind(sequence, false);
    resume_at_ns_ = now_ns + uint64_t{wire::rnr_timer_us(syndrome)} * 1000;
    return;
  }
  switch (syndrome) {
    case wire::kNakSequence: {
      ++counters_.sequence_naks;
      const Sent& refused = sent(sequence);
      // A second copy of the NAK, or one that crossed our repair, asks for nothing new.
      if (!lost_.test(sequence) && !(refused.is_resent && now_ns - refused.at_ns < congestion_.least_rtt_ns())) {
        rewind(sequence, false);
        congestion_.on_rewind(now_ns);
      }
      break;
    }
    case wire::kNakInvalidRequest:
      fail(RequesterFailure::remote_invalid_request);
      break;
    case wire::kNakRemoteAccess:
      fail(RequesterFailure::remote_access);
      break;
    case wire::kNakRemoteOperation:
      fail(RequesterFailure::remote_operation);
      break;
    default:
      ++counters_.ignored;
  }
}

void RcRequester::on_selective(uint64_t now_ns, const wire::PacketView& packet) {
  const base::Result<wire::SelectiveAck> ack = wire::parse_selective_ack(packet.payload);
  const int32_t ahead = psn_distance(packet.headers.bth.psn, psn_of(oldest_));
  if (!is_selective_ || !ack || ahead < 0 || static_cast<uint64_t>(ahead) > next_ - oldest_) {
    ++counters_.ignored;
    return;
  }
  const uint64_t missing = oldest_ + static_cast<uint64_t>(ahead);
  acknowledge_below(now_ns, missing);
  take_hearsay(now_ns, missing, *ack);
  find_lost_requests(now_ns, missing, *ack);
  look_for_gap(now_ns);
}

/// The peer holds these, though it did not execute them yet. A READ or atomic is delivered only when its answer is
/// here.
void RcRequester::take_hearsay(uint64_t now_ns, uint64_t missing, const wire::SelectiveAck& ack) {
  uint32_t packets = 0;
  for (size_t word = 0; word < ack.words.size(); ++word) {
    for (uint64_t bits = ack.words[word]; bits != 0; bits &= bits - 1) {
      const uint64_t sequence = missing + 1 + word * 64 + static_cast<uint64_t>(std::countr_zero(bits));
      if (sequence >= next_) {
        break;
      }
      if (!delivered_.test(sequence) && sent(sequence).is_unheard) {
        note_delivered(now_ns, sequence);
        if (!sent(sequence).is_answered) {
          delivered_.set(sequence);
          lost_.clear(sequence);
          ++packets;
        }
      }
    }
  }
  congestion_.on_delivered(now_ns, packets, newest_rtt_ns_);
  newest_rtt_ns_ = 0;
}

void RcRequester::find_lost_requests(uint64_t now_ns, uint64_t missing, const wire::SelectiveAck& ack) {
  uint32_t found = 0;
  for (uint64_t at = missing; at < next_; ++at) {
    const bool is_held = at > missing && at - missing <= wire::kSelectiveAckBits && ack.has(at - missing - 1);
    if (!is_held && sent(at).is_unheard && is_overtaken(at)) {
      lost_.set(at);
      ++found;
    }
  }
  if (found != 0) {
    congestion_.on_loss(now_ns, found);
  }
}

std::optional<RcRequester::Place> RcRequester::find_answer(uint64_t now_ns, const wire::PacketView& packet) {
  uint64_t sequence = 0;
  if (!find_sequence(packet.headers.bth.psn, sequence) || !sent(sequence).is_answered) {
    ++counters_.ignored;
    return std::nullopt;
  }
  const Entry& of = entry(sent(sequence).operation);
  const bool is_atomic = packet.headers.bth.opcode == wire::kRcAtomicAcknowledge;
  if (is_atomic != of.operation.is_atomic() || delivered_.test(sequence)) {
    ++counters_.ignored;
    return std::nullopt;
  }
  const auto index = static_cast<uint32_t>(sequence - of.first);
  const uint32_t offset = index * attributes_.mtu_bytes;
  const uint32_t length = is_atomic ? 0 : std::min(of.operation.length - offset, attributes_.mtu_bytes);
  const Place place{sequence, sent(sequence).operation, offset, length};
  if (packet.payload.size() != length) {
    fail(RequesterFailure::bad_response);
    return std::nullopt;
  }
  acknowledge_below(now_ns, sequence);  // answers come in order: whatever precedes it is executed
  if (!is_selective_ && oldest_ != sequence) {
    look_for_gap(now_ns);
    return std::nullopt;
  }
  if (!is_atomic && awaits_earlier_read(sequence)) {
    ++counters_.ignored;
    return std::nullopt;
  }
  return place;
}

/// Whether a READ of an earlier operation, asked for again, is not answered yet: what comes before that answer is of an
/// earlier time.
bool RcRequester::awaits_earlier_read(uint64_t sequence) {
  for (uint64_t at = oldest_; at < std::min(sequence, reread_end_); ++at) {
    if (sent(at).is_resent && !delivered_.test(at) && sent(at).operation != sent(sequence).operation && is_read(at)) {
      return true;
    }
  }
  return false;
}

void RcRequester::take_answer(uint64_t now_ns, const Place& place) {
  delivered_.set(place.sequence);
  lost_.clear(place.sequence);
  note_delivered(now_ns, place.sequence);
  congestion_.on_delivered(now_ns, 1, newest_rtt_ns_);
  newest_rtt_ns_ = 0;
  acknowledged_ = std::max(acknowledged_, place.sequence + 1);
  advance(now_ns);
  look_for_gap(now_ns);
}

void RcRequester::acknowledge_below(uint64_t now_ns, uint64_t sequence) {
  if (sequence <= acknowledged_) {
    return;
  }
  const uint64_t from = acknowledged_;
  acknowledged_ = sequence;
  note_delivered(now_ns, sequence - 1);
  const auto packets = static_cast<uint32_t>(sequence - from) - delivered_.count(from, sequence);
  congestion_.on_delivered(now_ns, packets, newest_rtt_ns_);
  newest_rtt_ns_ = 0;
  advance(now_ns);
  // A READ before it still misses data: what was acknowledged after that is not on its way any more.
  for (uint64_t at = std::max(from, oldest_); at < acknowledged_; ++at) {
    if (!sent(at).is_answered) {
      delivered_.set(at);
      lost_.clear(at);
    }
  }
}

void RcRequester::note_delivered(uint64_t now_ns, uint64_t sequence) {
  Sent& packet = sent(sequence);
  // Of a packet that was sent twice, an answer sooner than any other is one to the first copy.
  const uint64_t elapsed = now_ns - packet.at_ns;
  if (packet.is_resent && elapsed < congestion_.least_rtt_ns()) {
    return;
  }
  if (static_cast<int32_t>(packet.order - newest_order_) > 0) {
    newest_order_ = packet.order;
  }
  activity_at_ns_ = now_ns;
  // Later answers of one READ request tell how long the data takes, not the way.
  if (!packet.is_resent && packet.is_unheard) {
    newest_rtt_ns_ = std::max<uint64_t>(elapsed, 1);
  }
  packet.is_unheard = false;
}

/// Operations before sending_ are complete when their packets are; so is the one being sent up to where it was.
void RcRequester::advance(uint64_t now_ns) {
  const uint64_t from = oldest_;
  while (oldest_ < next_) {
    const Entry& current = entry(completed_);
    const uint64_t end = current.first + current.packets;
    oldest_ = current.operation.is_answered() ? advance_answered(end) : std::max(oldest_, std::min(end, acknowledged_));
    if (oldest_ != end) {
      break;
    }
    ++completed_;
  }
  if (oldest_ == from) {
    return;
  }
  acknowledged_ = std::max(acknowledged_, oldest_);
  delivered_.clear_range(from, oldest_);
  lost_.clear_range(from, oldest_);
  piece_ends_.clear_range(from, oldest_);
  has_seen_gap_ = false;
  probes_in_row_ = 0;
  progress_at_ns_ = now_ns;
  activity_at_ns_ = now_ns;
  retries_left_ = attributes_.retry_count;
  rnr_retries_left_ = attributes_.rnr_retry;
}

uint64_t RcRequester::advance_answered(uint64_t end) {
  const uint64_t to = std::min(end, next_);
  const uint64_t stop = delivered_.find_clear(oldest_, to);
  answers_under_way_ -= piece_ends_.count(oldest_, stop);
  return stop;
}

void RcRequester::look_for_gap(uint64_t now_ns) {
  if (acknowledged_ <= oldest_) {
    return;
  }
  if (is_selective_) {
    find_lost_answers(now_ns);
  } else if (!has_seen_gap_) {
    // Data is missing of a READ that the peer has answered: ask again from there, once.
    has_seen_gap_ = true;
    ++counters_.implied_naks;
    rewind(oldest_, false);
    congestion_.on_rewind(now_ns);
  }
}

/// What the peer has executed and answered, and of which the answer is overtaken by later ones.
void RcRequester::find_lost_answers(uint64_t now_ns) {
  uint32_t found = 0;
  for (uint64_t at = oldest_; at < acknowledged_; ++at) {
    if (sent(at).is_answered && is_overtaken(at)) {
      lost_.set(at);
      ++found;
    }
  }
  if (found != 0) {
    congestion_.on_loss(now_ns, found);
  }
}

bool RcRequester::is_overtaken(uint64_t sequence) const {
  return !delivered_.test(sequence) && !lost_.test(sequence) &&
         static_cast<int32_t>(newest_order_ - sent(sequence).order) > kReorderPackets;
}

/// All from `from` on goes again, except what is certain to have arrived, or said to have.
void RcRequester::rewind(uint64_t from, bool trusts_hearsay) {
  for (uint64_t at = from; at < next_; ++at) {
    const bool has_arrived = sent(at).is_answered || trusts_hearsay ? delivered_.test(at) : at < acknowledged_;
    if (!has_arrived) {
      delivered_.clear(at);
      lost_.set(at);
    }
  }
}

}  // namespace ringbolt::transport
